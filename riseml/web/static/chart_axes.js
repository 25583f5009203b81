// @ts-check
/** The axes of a chart: what they hold, their ticks, and their titles. A logarithmic axis is in powers of ten. */

import { TIME, dropOutliers, findExtent } from "./chart_data.js";
import { formatNumber } from "./format.js";

/** @import { Line } from "./chart_data.js" */

const MOST_COUNTED = 2 ** 50; // steps up to a tick; from 2 ** 53 on, a number and the next one are the same
const [MARGIN, SIDE] = [0.05, 0.015]; // of the height, above and below the curves; of the width, beside them
const DECADES = 3; // a logarithmic axis with more of them has ticks at powers of ten alone
/** Names, seconds, and the distances of ticks in them. @type {[string, number, number[]][]} */
const TIMES = [
  ["days", 86_400, []],
  ["hours", 3_600, [0.5, 1, 2, 3, 6, 12, 24]],
  ["minutes", 60, [0.5, 1, 2, 5, 10, 15, 30, 60]],
  ["seconds", 1, []],
];

/**
 * @typedef {{isLog: boolean, x: string, ignoresOutliers: boolean, showsBand: boolean}} AxisSettings
 * @typedef {{x: [number, number], y: [number, number] | null}} Zoom y as it is drawn: the power of ten where the axis is logarithmic
 * @typedef {{x: [number, number], y: [number, number], toY: (value: number) => number, xTitle: string, yTitle: string, xTicks: (low: number, high: number, count: number) => Tick[], yTicks: (low: number, high: number, count: number) => Tick[]}} Axes
 * @typedef {{place: number, text: string}} Tick
 */

/**
 * @param {Line[]} lines that are visible
 * @param {AxisSettings} settings
 * @param {{metric: string, xTitle: string}} names
 * @param {Zoom | null} zoom
 * @returns {Axes}
 */
export function makeAxes(lines, settings, { metric, xTitle }, zoom) {
  const { isLog } = settings;
  const toY = isLog ? Math.log10 : (/** @type {number} */ value) => value;
  const ends = lines.flatMap((line) => (line.x.length ? [line.x[0], line.x[line.x.length - 1]] : []));
  const x = zoom?.x ?? widen(spread(findExtent(ends)), SIDE);
  const y = zoom?.y ?? findHeights(lines, settings, x, toY);
  const isTime = settings.x === TIME;
  const [unit, size] = isTime ? chooseUnit(x[1] - x[0]) : ["", 1];
  return {
    x,
    y,
    toY,
    xTitle: isTime ? `time in ${unit}` : xTitle,
    yTitle: isLog ? `${metric} (log)` : metric,
    xTicks: (low, high, count) => (isTime ? listTimes(low, high, count, unit, size) : listTicks(low, high, count)),
    yTicks: (low, high, count) => (isLog ? listPowers(low, high, count) : listTicks(low, high, count)),
  };
}

/** @param {Line[]} lines @param {AxisSettings} settings @param {[number, number]} x @param {(value: number) => number} toY @returns {[number, number]} */
function findHeights(lines, { isLog, ignoresOutliers, showsBand }, x, toY) {
  const isIn = (/** @type {number} */ value) => value >= x[0] && value <= x[1];
  const isDrawn = (/** @type {number | null} */ value) => value !== null && Number.isFinite(value) && (!isLog || value > 0);
  /** @type {number[]} */
  const values = [];
  /** @type {number[]} */
  const edges = [];
  for (const line of lines) {
    for (const [at, place] of line.x.entries()) {
      if (!isIn(place)) continue;
      if (isDrawn(line.y[at])) values.push(/** @type {number} */ (line.y[at]));
      if (showsBand || line.isGroup) for (const edge of [line.low[at], line.high[at]]) if (isDrawn(edge)) edges.push(/** @type {number} */ (edge));
    }
  }
  const isFlat = values.length > 0 && values.every((value) => value === values[0]);
  const further = isFlat ? lines.flatMap((line) => line.range).filter(isDrawn) : [];
  const held = ignoresOutliers ? dropOutliers(values) : [...values, ...edges, ...further];
  return widen(spread(findExtent(held.map(toY))), MARGIN);
}

/** @param {[number, number]} ends @param {number} share @returns {[number, number]} */
function widen([low, high], share) {
  const margin = (high - low) * share;
  return [low - margin, high + margin];
}

/** @param {[number, number] | null} extent @returns {[number, number]} wide enough for an axis */
function spread(extent) {
  if (!extent) return [0, 1];
  const [low, high] = extent;
  return low === high ? [low - (Math.abs(low) || 1) / 10, high + (Math.abs(high) || 1) / 10] : [low, high];
}

/** @param {number} low @param {number} high @param {number} count at most, about @returns {Tick[]} at round numbers */
export function listTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10);
  return listMultiples(low, high, step).map((place) => ({ place, text: formatNumber(place) }));
}

/** @param {number} low @param {number} high @param {number} step @returns {number[]} */
function listMultiples(low, high, step) {
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  const isCounted = Number.isFinite(step) && Math.abs(first) < MOST_COUNTED && Math.abs(last) < MOST_COUNTED;
  if (!isCounted) return [low]; // values that differ only in their last bits, or by more than a number can hold
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** @param {number} low power of ten @param {number} high @param {number} count @returns {Tick[]} at 1, 2 and 5 of each power of ten */
export function listPowers(low, high, count) {
  const every = Math.max(1, Math.ceil((high - low) / count)); // powers from one tick to the next
  const factors = high - low <= DECADES ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const factor of power % every === 0 ? factors : []) {
      const place = power + Math.log10(factor);
      if (place >= low && place <= high) ticks.push({ place, text: formatNumber(Number(`${factor}e${power}`)) });
    }
  }
  if (ticks.length > 1) return ticks;
  return listTicks(10 ** low, 10 ** high, count).filter(({ place }) => place > 0).map(({ place, text }) => ({ place: Math.log10(place), text }));
}

/** @param {number} seconds @returns {[string, number]} */
function chooseUnit(seconds) {
  const [name, size] = TIMES.find(([, size]) => seconds >= 2 * size) ?? ["seconds", 1];
  return [name, size];
}

/** @param {number} low seconds @param {number} high @param {number} count @param {string} unit @param {number} size @returns {Tick[]} in the unit of the axis */
function listTimes(low, high, count, unit, size) {
  const rough = (high - low) / size / count;
  const steps = TIMES.find(([name]) => name === unit)?.[2] ?? [];
  const step = steps.find((one) => one >= rough);
  const ticks = step ? listMultiples(low / size, high / size, step) : listTicks(low / size, high / size, count).map(({ place }) => place);
  return ticks.map((place) => ({ place: place * size, text: formatNumber(place) }));
}
