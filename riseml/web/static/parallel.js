// @ts-check
/** Parallel coordinates: an axis for each parameter and one for the metric, a line for each trial. */

import { draw, fill, make, setText } from "./dom.js";
import { formatNumber } from "./format.js";
import { areNumbers } from "./numbers.js";
import { onWidth } from "./parts.js";

const MOST_AXES = 12;
const MOST_TICKS = 6; // of an axis with few numbers, or with words
const [TOP, BOTTOM, HEIGHT] = [34, 250, 282];
const FIRST = 70; // pixels to the first axis
const LAST = 40; // pixels behind the last axis
const [WIDTH, LEAST_GAP] = [1100, 110]; // pixels of the picture where its place is not known, and between two axes
const REACH = 14; // pixels from the pointer to a line

/** @typedef {{id: string, values: (string | number | null)[]}} Trial one value for each axis; the last one is the metric */
/** @typedef {{name: string, place: (value: string | number | null) => number | null, ticks: [number, string][]}} Axis */

export class ParallelPanel {
  constructor() {
    /** @type {{trial: Trial, points: [number, number][], line: SVGElement}[]} the first ones are drawn strongest */
    this.lines = [];
    /** @type {string[]} */
    this.names = [];
    this.marked = -1;
    this.first = "best"; // what the first trials are
    this.range = make("input", { type: "range", min: "5", max: "100", step: "5", value: "100", "aria-label": "Show the best, per cent", oninput: () => this.choose() });
    this.share = make("span", { class: "number" }, "100 %");
    this.values = make("p", { class: "values soft", role: "status" });
    const onpointermove = (/** @type {PointerEvent} */ event) => this.point(event);
    const onkeydown = (/** @type {KeyboardEvent} */ event) => this.onKey(event);
    this.place = make("div", { class: "wide parallel", tabindex: "0", role: "region", "aria-label": "Parallel coordinates; arrow keys go from trial to trial", onpointermove, onpointerleave: () => this.mark(-1), onkeydown });
    /** @type {{names: string[], trials: Trial[]} | null} */
    this.shownLast = null;
    onWidth(this.place, () => this.shownLast && this.show(this.shownLast.names, this.shownLast.trials, this.first));
    this.label = make("span", {}, "the best");
    const controls = make("div", { class: "controls" }, make("label", {}, this.label, " ", this.range, " ", this.share));
    this.element = make("section", { class: "panel", "aria-label": "Parameters and metric" }, make("div", { class: "line" }, make("h2", {}, "Parameters and metric"), controls), this.place, this.values);
  }

  /**
   * @param {string[]} names of the axes; the last one is the metric
   * @param {Trial[]} trials in the order of their values
   * @param {string} first what the first ones are: `best`, or `largest` where no goal says what is better
   */
  show(names, trials, first) {
    this.first = first;
    setText(this.label, `the ${first}`);
    this.range.setAttribute("aria-label", `Show the ${first}, per cent`);
    const chosen = [...names.slice(0, -1).slice(0, MOST_AXES - 1), names[names.length - 1]];
    const at = chosen.map((_, place) => (place === chosen.length - 1 ? names.length - 1 : place));
    const axes = chosen.map((name, place) => makeAxis(name, trials.map((trial) => trial.values[at[place]])));
    const gap = Math.max(LEAST_GAP, ((this.place.clientWidth || WIDTH) - FIRST - LAST) / (axes.length - 1));
    const width = Math.floor(FIRST + LAST + gap * (axes.length - 1));
    const marked = this.lines[this.marked]?.trial.id;
    this.shownLast = { names, trials };
    this.names = names;
    this.lines = trials.map((trial, rank) => {
      const points = axes.flatMap((axis, place) => {
        const y = axis.place(trial.values[at[place]]);
        return y === null ? [] : [/** @type {[number, number]} */ ([FIRST + gap * place, y])];
      });
      const opacity = 0.12 + 0.68 * (1 - rank / Math.max(1, trials.length - 1)) ** 2;
      const line = draw("polyline", { points: points.map((point) => point.map((one) => one.toFixed(1)).join(",")).join(" "), "stroke-opacity": opacity.toFixed(2) });
      return { trial, points, line };
    });
    const label = `${trials.length} trials over ${chosen.join(", ")}`;
    const lines = draw("g", { class: "trials" }, this.lines.map(({ line }) => line).reverse());
    const picture = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label },
      axes.map((_, place) => draw("g", { class: "grid" }, draw("line", { x1: FIRST + gap * place, x2: FIRST + gap * place, y1: TOP, y2: BOTTOM }))),
      lines,
      axes.map((axis, place) => drawAxis(axis, FIRST + gap * place)));
    fill(this.place, picture);
    this.choose();
    const rank = this.lines.slice(0, this.shown).findIndex(({ trial }) => trial.id === marked);
    if (rank >= 0) this.mark(rank);
  }

  /** Show as many of the first ones as the user wants. */
  choose() {
    const share = Number(this.range.value);
    const shown = Math.max(1, Math.ceil((this.lines.length * share) / 100));
    setText(this.share, `${share} %`);
    for (const [rank, { line }] of this.lines.entries()) line.setAttribute("visibility", rank < shown ? "visible" : "hidden");
    this.shown = shown;
    this.mark(-1);
  }

  /** @param {number} rank of the line that is shown above the others; -1: none */
  mark(rank) {
    this.lines[this.marked]?.line.classList.remove("marked");
    this.marked = rank;
    const found = this.lines[rank];
    if (!found) return setText(this.values, this.lines.length ? `The ${this.first} are drawn strongest.` : "No trial has a value so far.");
    found.line.classList.add("marked");
    found.line.parentNode?.append(found.line);
    const { id, values } = found.trial;
    setText(this.values, `${id}: ${this.names.map((name, at) => `${name} ${formatNumber(values[at])}`).join(" · ")}`);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const picture = /** @type {SVGSVGElement | null} */ (this.place.querySelector("svg"));
    const matrix = picture?.getScreenCTM();
    if (!picture || !matrix) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let [best, nearest] = [-1, REACH];
    for (const [rank, { points }] of this.lines.slice(0, this.shown).entries()) {
      const distance = Math.abs(findHeight(points, x) - y);
      if (distance < nearest) [best, nearest] = [rank, distance];
    }
    if (best !== this.marked) this.mark(best);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.lines.length) return;
    event.preventDefault();
    const count = this.shown ?? this.lines.length;
    this.mark(this.marked < 0 ? (step > 0 ? 0 : count - 1) : (this.marked + step + count) % count);
  }
}

/** @param {[number, number][]} points @param {number} x @returns {number} y of the line at x; NaN: the line does not reach x */
function findHeight(points, x) {
  const right = points.findIndex(([place]) => place >= x);
  if (right <= 0) return Number.NaN;
  const [[x0, y0], [x1, y1]] = [points[right - 1], points[right]];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

/** @param {string} name @param {(string | number | null)[]} values @returns {Axis} */
function makeAxis(name, values) {
  const known = values.filter((value) => value !== null && value !== "");
  const texts = known.filter((value) => typeof value === "string");
  const isNumeric = known.length > 0 && areNumbers(texts);
  return isNumeric ? makeNumberAxis(name, known) : makeWordAxis(name, known.map(String));
}

/** @param {string} name @param {(string | number | null)[]} known numbers, and texts that are numbers @returns {Axis} */
function makeNumberAxis(name, known) {
  const numbers = known.map(Number);
  const written = new Map(known.map((value) => [Number(value), typeof value === "string" ? shorten(value, 12) : formatNumber(Number(value?.toPrecision(4)))]));
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const isLog = low > 0 && high / low >= 100;
  const transform = isLog ? Math.log10 : (/** @type {number} */ value) => value;
  const [from, to] = [transform(low), transform(high)];
  const place = (/** @type {number} */ value) => (from === to ? (TOP + BOTTOM) / 2 : BOTTOM - ((transform(value) - from) / (to - from)) * (BOTTOM - TOP));
  const middle = isLog ? 10 ** ((from + to) / 2) : (low + high) / 2;
  const few = [...new Set(numbers)];
  const marks = few.length <= MOST_TICKS ? few : [low, middle, high];
  return {
    name: isLog ? `${name} (log)` : name,
    place: (value) => (value === null || value === "" || !Number.isFinite(Number(value)) ? null : place(Number(value))),
    ticks: marks.map((value) => [place(value), written.get(value) ?? formatNumber(Number(value.toPrecision(4)))]),
  };
}

/** @param {string} name @param {string[]} words @returns {Axis} */
function makeWordAxis(name, words) {
  const sorted = [...new Set(words)].sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
  const step = (BOTTOM - TOP) / Math.max(1, sorted.length - 1);
  const places = new Map(sorted.map((word, at) => [word, sorted.length === 1 ? (TOP + BOTTOM) / 2 : BOTTOM - at * step]));
  const every = Math.ceil(sorted.length / MOST_TICKS);
  return {
    name,
    place: (value) => (value === null ? null : (places.get(String(value)) ?? null)),
    ticks: sorted.filter((_, at) => at % every === 0).map((word) => [places.get(word) ?? 0, shorten(word, 12)]),
  };
}

/** @param {Axis} axis @param {number} x */
function drawAxis({ name, ticks }, x) {
  const marks = ticks.map(([y, text]) => draw("text", { x: x - 6, y: y + 4, "text-anchor": "end" }, text));
  const title = draw("text", { class: "axis", x, y: 16, "text-anchor": "middle" }, draw("title", {}, name), shorten(name, 20));
  return draw("g", { class: "words" }, marks, title);
}

/** @param {string} text @param {number} most */
function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
