// @ts-check
/** A chart as a picture of its own in SVG, with its title, its axes and the names of its curves: what a user downloads. */

import { pickColour, pickDash } from "./chart_colours.js";
import { draw } from "./dom.js";

/** @import { Axes } from "./chart_axes.js" */
/** @import { Palette } from "./chart_colours.js" */
/** @import { Line } from "./chart_data.js" */

const [LEFT, RIGHT, TOP, BELOW] = [72, 20, 40, 44]; // pixels around the curves
const [TEXT, ROW] = [12, 18]; // pixels
const MOST_NAMES = 40;
const LOST = 4; // pixels from the middle of a cross to its end

/** @typedef {{lines: Line[], axes: Axes, title: string, palette: Palette, showsBand: boolean}} Picture */

/** @param {Picture} picture @param {number} width @param {number} height of the curves with their axes @returns {SVGElement} */
export function drawSvg({ lines, axes, title, palette, showsBand }, width, height) {
  const box = { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BELOW };
  const x = (/** @type {number} */ value) => box.left + ((value - axes.x[0]) / (axes.x[1] - axes.x[0])) * (box.right - box.left);
  const up = (/** @type {number} */ place) => box.bottom - ((place - axes.y[0]) / (axes.y[1] - axes.y[0])) * (box.bottom - box.top);
  const y = (/** @type {number} */ value) => Math.min(2 * height, Math.max(-height, up(axes.toY(value))));
  const named = lines.filter((line) => !line.isFaint).slice(0, lines.length > 1 ? MOST_NAMES : 0);
  const text = (/** @type {object} */ fields, /** @type {string} */ words) => draw("text", { "font-size": TEXT, fill: palette.soft, ...fields }, words);
  const grid = [
    ...axes.yTicks(...axes.y, 5).flatMap(({ place, text: words }) => [
      draw("line", { x1: box.left, x2: box.right, y1: up(place), y2: up(place), stroke: palette.grid }),
      text({ x: box.left - 6, y: up(place) + 4, "text-anchor": "end" }, words),
    ]),
    ...axes.xTicks(...axes.x, 6).map(({ place, text: words }) => text({ x: x(place), y: box.bottom + 16, "text-anchor": "middle" }, words)),
    text({ x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" }, axes.xTitle),
    text({ transform: `translate(14 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, axes.yTitle),
    text({ x: box.left, y: 22, fill: palette.text, "font-weight": "bold" }, title),
  ];
  const keys = named.map((line, at) => [
    draw("line", { x1: box.left, x2: box.left + 24, y1: height + at * ROW, y2: height + at * ROW, ...strokeOf(line, palette) }),
    text({ x: box.left + 32, y: height + at * ROW + 4 }, line.name),
  ]);
  const total = height + named.length * ROW;
  const clip = draw("clipPath", { id: "curves" }, draw("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }));
  const curves = draw("g", { "clip-path": "url(#curves)" }, lines.flatMap((line) => drawLine(line, x, y, palette, showsBand || line.isGroup)));
  return draw("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${total}`, width, height: total, "font-family": palette.font },
    draw("rect", { width, height: total, fill: palette.back }), clip, grid, curves, keys.flat());
}

/** @param {Line} line @param {Palette} palette */
function strokeOf({ colour, isFaint }, palette) {
  return { fill: "none", stroke: palette.lines[pickColour(colour)], "stroke-width": isFaint ? 0.8 : 1.8, "stroke-opacity": isFaint ? 0.35 : 1, "stroke-dasharray": pickDash(colour).join(" ") || null };
}

/** @param {Line} line @param {(value: number) => number} x @param {(value: number) => number} y @param {Palette} palette @param {boolean} hasBand */
function drawLine(line, x, y, palette, hasBand) {
  const place = (/** @type {number} */ at, /** @type {number} */ value) => `${x(line.x[at]).toFixed(1)},${y(value).toFixed(1)}`;
  return [
    ...splitRuns(line).flatMap(({ from, to }) => {
      const all = Array.from({ length: to - from }, (_, at) => from + at);
      const drawn = all.map((at) => place(at, /** @type {number} */ (line.y[at])));
      const edge = (/** @type {(number | null)[]} */ values) => all.map((at) => place(at, values[at] ?? /** @type {number} */ (line.y[at])));
      const band = hasBand && draw("polygon", { points: [...edge(line.high), ...edge(line.low).reverse()].join(" "), fill: palette.lines[pickColour(line.colour)], "fill-opacity": 0.14 });
      const [cx, cy] = drawn[0].split(",");
      const shape = drawn.length > 1 ? draw("polyline", { points: drawn.join(" "), ...strokeOf(line, palette) }) : draw("circle", { cx, cy, r: 3, fill: palette.lines[pickColour(line.colour)] });
      return band ? [band, shape] : [shape];
    }),
    ...listLost(line).map((at) => {
      const [cx, cy] = [x(line.x[at]), y(findBeside(line, at))];
      return draw("path", { d: `M${cx - LOST} ${cy - LOST}L${cx + LOST} ${cy + LOST}M${cx - LOST} ${cy + LOST}L${cx + LOST} ${cy - LOST}`, stroke: palette.lines[pickColour(line.colour)], "stroke-width": 1.6 });
    }),
  ];
}

/** @param {Line} line @returns {{from: number, to: number}[]} its parts between gaps; `to` is the first place after it */
export function splitRuns({ y }) {
  const runs = [];
  let from = -1;
  for (let at = 0; at <= y.length; at += 1) {
    const isDrawn = at < y.length && y[at] !== null;
    if (isDrawn && from < 0) from = at;
    if (!isDrawn && from >= 0) {
      runs.push({ from, to: at });
      from = -1;
    }
  }
  return runs;
}

/** @param {Line} line @returns {number[]} places of values that are nan or infinite */
export function listLost({ lost }) {
  return lost.flatMap((count, at) => (count ? [at] : []));
}

/** Return the nearest value that is drawn, where a mark for one that is none can be: that of the place, or before it. @param {Line} line @param {number} at */
export function findBeside({ y }, at) {
  for (let place = at; place >= 0; place -= 1) if (y[place] !== null) return /** @type {number} */ (y[place]);
  return y.find((value) => value !== null) ?? 0;
}
