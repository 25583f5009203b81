// @ts-check
/** Line charts as SVG. Colours come from style.css, so that a change between dark and light needs no redrawing. */

import { draw } from "./dom.js";
import { formatNumber, formatSpan } from "./format.js";

/** @import { MetricBucket } from "../wire.js" */

const [WIDTH, HEIGHT] = [560, 240];
const PLOT = { left: 56, right: 550, top: 10, bottom: 210 };
const COLOURS = 8; // of lines, in style.css
const MOST_COUNTED = 2 ** 50; // steps up to a tick; from 2 ** 53 on, a number and the next one are the same

/**
 * @typedef {{x: number, y: number, low: number, high: number}} Point
 * @typedef {{name: string, points: Point[], range: number[]}} Line
 * @typedef {{isLog: boolean, isTime: boolean, smoothing: number}} ChartOptions
 * @typedef {Pick<MetricBucket, "mean" | "min" | "max" | "last_step" | "first_at" | "last_at">} Bucket
 * @typedef {{name: string, buckets: Bucket[], range?: number[]}} Series `range`: values that the axis has, too, where the line is flat
 */

/** @param {Series} series @param {ChartOptions} options @returns {Line} */
export function makeLine({ name, buckets, range = [] }, { isTime, smoothing }) {
  const known = buckets.filter((bucket) => bucket.mean !== null);
  const start = known.length ? Date.parse(known[0].first_at) : 0;
  let mean = Number.NaN;
  const points = known.map((bucket, at) => {
    const x = isTime ? (Date.parse(bucket.last_at) - start) / 1000 : (bucket.last_step ?? at);
    const value = /** @type {number} */ (bucket.mean);
    mean = Number.isNaN(mean) ? value : smoothing * mean + (1 - smoothing) * value;
    return { x, y: mean, low: bucket.min ?? value, high: bucket.max ?? value };
  });
  return { name, points, range };
}

/**
 * @param {Line[]} lines
 * @param {ChartOptions} options
 * @param {string} label
 * @returns {{picture: SVGElement, find: (x: number) => {x: number, place: number, rows: {name: string, y: number, place: number, colour: number}[]} | null}}
 */
export function drawChart(lines, options, label) {
  const shown = options.isLog ? lines.map((line) => ({ ...line, points: line.points.filter((point) => point.y > 0) })) : lines;
  const all = shown.flatMap((line) => line.points);
  const scales = makeScales(all, shown.flatMap((line) => line.range), options);
  const parts = shown.map((line, at) => drawLine(line, at % COLOURS, scales, shown.length === 1 && !options.smoothing && !options.isLog));
  const empty = all.length ? null : draw("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "no finite value");
  const picture = draw("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, drawGrid(scales, options), parts, empty);
  return { picture, find: (x) => findNearest(shown, scales, x) };
}

/** @typedef {{x: (value: number) => number, y: (value: number) => number, xs: number[], ys: number[]}} Scales */

/** @param {Point[]} points @param {number[]} range @param {ChartOptions} options @returns {Scales} */
function makeScales(points, range, { isLog }) {
  const xs = findRange(points.map((point) => point.x));
  const transform = isLog ? Math.log10 : (/** @type {number} */ value) => value;
  const values = points.map((point) => point.y);
  const isFlat = values.length > 0 && values.every((value) => value === values[0]);
  const ys = findRange([...values, ...(isFlat ? range.filter((value) => !isLog || value > 0) : [])].map(transform));
  const pad = (ys[1] - ys[0]) * 0.05;
  const [low, high] = [ys[0] - pad, ys[1] + pad];
  return {
    x: (value) => PLOT.left + ((value - xs[0]) / (xs[1] - xs[0])) * (PLOT.right - PLOT.left),
    y: (value) => clamp(PLOT.bottom - ((transform(value) - low) / (high - low)) * (PLOT.bottom - PLOT.top)),
    xs: listTicks(xs[0], xs[1], 6),
    ys: isLog ? listPowers(low, high) : listTicks(low, high, 5),
  };
}

/** @param {number} place */
function clamp(place) {
  return Math.min(PLOT.bottom, Math.max(PLOT.top, place));
}

/** @param {number[]} values @returns {[number, number]} */
function findRange(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) / 10, high + (Math.abs(high) || 1) / 10] : [low, high];
}

/** @param {number} low @param {number} high @param {number} count @returns {number[]} round numbers */
function listTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10);
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  const isCounted = Number.isFinite(step) && Math.abs(first) < MOST_COUNTED && Math.abs(last) < MOST_COUNTED;
  if (!isCounted) return [low]; // values that differ only in their last bits, or by more than a number can hold
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** @param {number} low @param {number} high @returns {number[]} */
function listPowers(low, high) {
  const powers = [];
  for (let at = Math.floor(low); at <= high + 1; at += 1) if (at >= low && at <= high) powers.push(10 ** at);
  return powers.length > 1 ? powers : listTicks(low, high, 4).map((at) => 10 ** at);
}

/** @param {Scales} scales @param {ChartOptions} options */
function drawGrid({ x, y, xs, ys }, { isTime }) {
  const rows = ys.map((tick) => [
    draw("line", { x1: PLOT.left, x2: PLOT.right, y1: y(tick), y2: y(tick) }),
    draw("text", { x: PLOT.left - 6, y: y(tick) + 4, "text-anchor": "end" }, formatNumber(tick)),
  ]);
  const columns = xs.map((tick) => draw("text", { x: x(tick), y: PLOT.bottom + 18, "text-anchor": "middle" }, isTime ? formatSpan(tick) : formatNumber(tick)));
  return draw("g", { class: "grid" }, rows.flat(), columns);
}

/** @param {Line} line @param {number} colour @param {Scales} scales @param {boolean} hasBand */
function drawLine({ points }, colour, { x, y }, hasBand) {
  if (!points.length) return draw("g");
  const round = (/** @type {number} */ value) => value.toFixed(1);
  const path = points.map((point) => `${round(x(point.x))},${round(y(point.y))}`);
  const above = points.map((point) => `${round(x(point.x))},${round(y(point.high))}`);
  const below = points.map((point) => `${round(x(point.x))},${round(y(point.low))}`).reverse();
  const band = hasBand ? draw("polygon", { class: "band", points: [...above, ...below].join(" ") }) : null;
  const single = points.length === 1 ? draw("circle", { cx: x(points[0].x), cy: y(points[0].y), r: 3 }) : null;
  return draw("g", { class: `line colour-${colour}` }, band, draw("polyline", { points: path.join(" ") }), single);
}

/** @param {Line[]} lines @param {Scales} scales @param {number} share where the pointer is, from 0 to 1 */
function findNearest(lines, { x, y }, share) {
  const wanted = share * WIDTH;
  let best = null;
  const rows = [];
  for (const [at, line] of lines.entries()) {
    let nearest = null;
    for (const point of line.points) if (!nearest || Math.abs(x(point.x) - wanted) < Math.abs(x(nearest.x) - wanted)) nearest = point;
    if (!nearest) continue;
    rows.push({ name: line.name, y: nearest.y, place: y(nearest.y), colour: at % COLOURS });
    if (!best || Math.abs(x(nearest.x) - wanted) < Math.abs(x(best.x) - wanted)) best = nearest;
  }
  return best ? { x: best.x, place: x(best.x), rows } : null;
}
