// @ts-check
/** A chart on the page: uPlot draws axes and curves, and takes the pointer; bands, marks and the names at the cursor are the page's. */

import { pickColour, pickDash } from "./chart_colours.js";
import { findNear } from "./chart_data.js";
import { findBeside, listLost, splitRuns } from "./chart_svg.js";
import { fill, make } from "./dom.js";
import { loadModule, loadStyle } from "./vendor.js";

/** @import { Axes, Zoom } from "./chart_axes.js" */
/** @import { Palette } from "./chart_colours.js" */
/** @import { Line } from "./chart_data.js" */
/** @import { Plot, PlotModule } from "../uplot.js" */

const HEIGHT = 250; // pixels, with the axes
const TEXT = 12; // pixels, as the page has beside charts
const REACH = 8; // pixels from the pointer to a value at least
const LEAST_DRAG = 5; // pixels that are a drag, not a click
const MOST_NAMED = 12; // curves whose values the cursor names
const [WIDE, HIGH] = [66, 45]; // pixels from one tick to the next, about
const GAP = 8; // pixels between an axis and its numbers, and around the box at the cursor
const LOST = 4; // pixels from the middle of a cross to its end
const TITLE = 18; // pixels of the title of an axis

/**
 * @typedef {{lines: Line[], axes: Axes, palette: Palette, showsBand: boolean}} Model the visible lines
 * @typedef {{line: Line, at: number}} Hit a value at the cursor
 * @typedef {{zoom: (zoom: Zoom) => void, reset: () => void, fail: (error: unknown) => void, repaint: () => void, describe: (hits: Hit[], rest: number) => import("./dom.js").Child[]}} Handlers
 */

export class CurvePlot {
  /** @param {HTMLElement} place @param {Handlers} handlers */
  constructor(place, handlers) {
    this.place = place;
    this.handlers = handlers;
    /** @type {Model | null} */
    this.model = null;
    /** @type {Plot | null} */
    this.plot = null;
    /** @type {Promise<PlotModule> | null} */
    this.loading = null;
    this.width = 0;
    this.tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.marks = make("div", { class: "marks", "aria-hidden": "true" });
    place.addEventListener("pointerdown", (event) => this.beginPan(event), { capture: true });
    place.addEventListener("mousedown", (event) => event.shiftKey && event.stopPropagation(), { capture: true }); // not a selection of uPlot
    new ResizeObserver(() => this.resize()).observe(place);
    /** @type {MutationObserver | null} of the theme, while the chart is on the page */
    this.painter = null;
  }

  /** @param {Model} model @returns {Promise<void>} */
  async show(model) {
    this.model = model;
    if (!this.place.clientWidth) return; // `resize` draws it when it has a place
    const module = await this.load();
    if (this.model === model) this.draw(module);
  }

  /** @returns {Promise<PlotModule>} */
  load() {
    this.loading ??= Promise.all([loadModule("uplot"), loadStyle("uplot")]).then(([module]) => /** @type {PlotModule} */ (module));
    return this.loading;
  }

  resize() {
    const width = this.place.clientWidth;
    if (!this.place.isConnected) return this.end();
    if (!width || width === this.width || !this.model) return;
    this.load().then((module) => this.draw(module), (error) => this.handlers.fail(error));
  }

  end() {
    this.plot?.destroy();
    this.plot = null;
    this.painter?.disconnect();
    this.painter = null;
    this.width = 0;
  }

  /** @param {PlotModule} module */
  draw(module) {
    const { model } = this;
    this.width = this.place.clientWidth;
    if (!model || !this.width || !this.place.isConnected) return;
    const cursor = this.plot?.cursor.left ?? -1;
    this.plot?.destroy();
    const data = [null, ...model.lines.map((line) => [line.x, line.y.map((value) => this.toPlace(value))])];
    const hasLines = model.lines.length > 0;
    this.plot = new module.default(this.makeOptions(model), hasLines ? data : [null, [[], []]], this.place);
    this.plot.over.append(this.marks, this.tip);
    if (!this.painter) {
      this.painter = new MutationObserver(() => this.handlers.repaint());
      this.painter.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    }
    if (cursor < 0) this.leave();
  }

  /** @param {number | null} value @returns {number | null} where the axis has it; null: nowhere */
  toPlace(value) {
    const place = value === null ? Number.NaN : (this.model?.axes.toY(value) ?? Number.NaN);
    return Number.isFinite(place) ? place : null;
  }

  /** @param {Model} model */
  makeOptions({ lines, axes, palette }) {
    const font = `${TEXT}px ${palette.font}`;
    const measure = makeMeasure(font);
    const count = { x: Math.max(2, Math.floor(this.width / WIDE)), y: Math.floor(HEIGHT / HIGH) };
    const ticks = { x: axes.xTicks(...axes.x, count.x), y: axes.yTicks(...axes.y, count.y) };
    const half = ticks.x.length ? measure(ticks.x[ticks.x.length - 1].text) / 2 : 0;
    const style = { font, labelFont: font, labelSize: TITLE, labelGap: 0, stroke: palette.soft, ticks: { show: false }, gap: GAP };
    const makeAxis = (/** @type {"x" | "y"} */ scale) => ({
      ...style,
      ...makeDistances(axes[scale]),
      scale,
      side: scale === "x" ? 2 : 3,
      label: scale === "x" ? axes.xTitle : axes.yTitle,
      grid: { show: scale === "y", stroke: palette.grid, width: 1 },
      splits: () => ticks[scale].map(({ place }) => place),
      filter: (/** @type {Plot} */ _, /** @type {number[]} */ splits) => splits,
      values: () => ticks[scale].map(({ text }) => text),
      size: scale === "x" ? TEXT + GAP + 6 : 2 * GAP + Math.ceil(Math.max(12, ...ticks.y.map(({ text }) => measure(text)))),
    });
    return {
      mode: 2,
      width: this.width,
      height: HEIGHT,
      padding: [10, Math.ceil(half) + 4, 0, 2], // the last number has its room
      legend: { show: false },
      scales: { x: { time: false, auto: false, range: () => axes.x }, y: { auto: false, range: () => axes.y } },
      axes: [makeAxis("x"), makeAxis("y")],
      series: [null, ...(lines.length ? lines : [null]).map((line) => makeSeries(line, palette))],
      cursor: {
        y: false,
        points: { show: () => null },
        drag: { x: true, y: true, uni: 30, dist: LEAST_DRAG, setScale: false },
        bind: { dblclick: () => () => this.handlers.reset() },
      },
      hooks: {
        drawAxes: [(/** @type {Plot} */ plot) => this.drawBands(plot)],
        draw: [(/** @type {Plot} */ plot) => this.drawMarks(plot)],
        setCursor: [(/** @type {Plot} */ plot) => this.point(plot)],
        setSelect: [(/** @type {Plot} */ plot) => this.select(plot)],
      },
    };
  }

  /** Fill the bands between the least and the largest value. @param {Plot} plot */
  drawBands(plot) {
    if (!this.model) return;
    const { lines, palette, showsBand } = this.model;
    const context = beginDrawing(plot);
    for (const line of lines) {
      if (!(showsBand || line.isGroup)) continue;
      context.fillStyle = palette.lines[pickColour(line.colour)];
      context.globalAlpha = line.isGroup || lines.length <= 4 ? 0.16 : 0.07;
      for (const { from, to } of splitRuns(line)) {
        context.beginPath();
        for (let at = from; at < to; at += 1) this.lineTo(plot, line, at, line.high[at]);
        for (let at = to - 1; at >= from; at -= 1) this.lineTo(plot, line, at, line.low[at]);
        context.fill();
      }
    }
    context.restore();
  }

  /** @param {Plot} plot @param {Line} line @param {number} at @param {number | null} value */
  lineTo(plot, line, at, value) {
    const place = this.toPlace(value) ?? this.model?.axes.y[0] ?? 0; // a logarithmic axis has no zero: the band goes down to its end
    plot.ctx.lineTo(plot.valToPos(line.x[at], "x", true), plot.valToPos(place, "y", true));
  }

  /** Mark single values, and those that are nan or infinite. @param {Plot} plot */
  drawMarks(plot) {
    if (!this.model) return;
    const { lines, palette } = this.model;
    const context = beginDrawing(plot);
    const scale = devicePixelRatio;
    for (const line of lines) {
      context.strokeStyle = context.fillStyle = palette.lines[pickColour(line.colour)];
      context.lineWidth = 1.6 * scale;
      context.globalAlpha = line.isFaint ? 0.4 : 1;
      for (const { from, to } of splitRuns(line)) {
        const place = to - from === 1 ? this.toPlace(line.y[from]) : null;
        if (place === null) continue;
        context.beginPath();
        context.arc(plot.valToPos(line.x[from], "x", true), plot.valToPos(place, "y", true), 3 * scale, 0, 2 * Math.PI);
        context.fill();
      }
      for (const at of listLost(line)) {
        const place = this.toPlace(findBeside(line, at)) ?? this.model.axes.y[0];
        const [x, y, size] = [plot.valToPos(line.x[at], "x", true), plot.valToPos(place, "y", true), LOST * scale];
        context.beginPath();
        for (const side of [1, -1]) {
          context.moveTo(x - size, y - side * size);
          context.lineTo(x + size, y + side * size);
        }
        context.stroke();
      }
    }
    context.restore();
  }

  /** Show the values near the cursor, and no others. @param {Plot} plot */
  point(plot) {
    const { left = -1, top = 0 } = plot.cursor;
    if (!this.model || left < 0) {
      this.leave();
      return;
    }
    const x = plot.posToVal(left, "x");
    const reach = Math.abs(plot.posToVal(left + REACH, "x") - x);
    this.name(plot, x, reach, left, top);
  }

  /** @param {Plot} plot @param {number} x @param {number} reach @param {number} left pixels @param {number} top @returns {Hit[]} the nearest first */
  name(plot, x, reach, left, top) {
    if (!this.model) return [];
    const hits = this.model.lines.flatMap((line) => {
      const at = line.isFaint ? -1 : findNear(line, x, reach);
      const place = at < 0 ? null : this.toPlace(line.y[at]);
      return place === null ? [] : [{ line, at, place, height: plot.valToPos(place, "y") }];
    });
    hits.sort((one, other) => Math.abs(one.height - top) - Math.abs(other.height - top));
    const named = hits.slice(0, MOST_NAMED);
    this.tip.hidden = !hits.length;
    fill(this.marks, named.map(({ line, at, height }) => {
      const mark = make("span", { class: `dot colour-${pickColour(line.colour)}` });
      mark.style.transform = `translate(${plot.valToPos(line.x[at], "x")}px, ${height}px)`;
      return mark;
    }));
    if (!hits.length) return [];
    fill(this.tip, this.handlers.describe(named, hits.length - named.length));
    const { clientWidth, clientHeight } = plot.over;
    const isRight = left + GAP + this.tip.offsetWidth > clientWidth;
    const place = Math.max(0, isRight ? left - GAP - this.tip.offsetWidth : left + GAP);
    this.tip.style.transform = `translate(${place}px, ${Math.max(0, Math.min(top + GAP, clientHeight - this.tip.offsetHeight))}px)`;
    return hits;
  }

  /** Show the values at x, as the pointer does, and return them. @param {number} x @returns {Hit[]} */
  nameAt(x) {
    const { plot } = this;
    if (!plot) return [];
    const left = plot.valToPos(x, "x");
    const { lines } = /** @type {Model} */ (this.model);
    const hits = this.name(plot, x, Math.abs(plot.posToVal(left + REACH, "x") - x), left, 0);
    return [...hits].sort((one, other) => lines.indexOf(one.line) - lines.indexOf(other.line));
  }

  leave() {
    this.tip.hidden = true;
    fill(this.marks);
  }

  /** Show what a user has drawn a box around. @param {Plot} plot */
  select(plot) {
    const { left, top, width, height } = plot.select;
    if (!this.model || (width < LEAST_DRAG && height < LEAST_DRAG)) return;
    const { axes } = this.model;
    const isWide = width >= plot.over.clientWidth - 1;
    const isHigh = height >= plot.over.clientHeight - 1;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.handlers.zoom({
      x: isWide ? axes.x : [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")],
      y: isHigh ? null : [plot.posToVal(top + height, "y"), plot.posToVal(top, "y")],
    });
  }

  /** Move what is shown with the pointer, while Shift is held. @param {PointerEvent} event */
  beginPan(event) {
    const { model, plot } = this;
    if (!event.shiftKey || !model || !plot) return;
    event.preventDefault();
    event.stopPropagation();
    const { axes } = model;
    const [x, y] = [event.clientX, event.clientY];
    const { clientWidth, clientHeight } = plot.over;
    const move = (/** @type {PointerEvent} */ now) => this.handlers.zoom(shift(axes, (x - now.clientX) / clientWidth, (now.clientY - y) / clientHeight));
    const control = new AbortController();
    addEventListener("pointermove", move, { signal: control.signal });
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => control.abort(), { signal: control.signal });
  }

  /** @returns {HTMLCanvasElement | null} the drawn chart */
  get canvas() {
    return this.plot?.ctx.canvas ?? null;
  }
}

/** @param {Axes} axes @param {number} across share of the width @param {number} up share of the height @returns {Zoom} */
export function shift({ x, y }, across, up) {
  const [dx, dy] = [(x[1] - x[0]) * across, (y[1] - y[0]) * up];
  return { x: [x[0] + dx, x[1] + dx], y: [y[0] + dy, y[1] + dy] };
}

/** @param {Axes} axes @param {number} factor below 1 shows less @returns {Zoom} around the middle */
export function scale({ x }, factor) {
  const [middle, half] = [(x[0] + x[1]) / 2, ((x[1] - x[0]) / 2) * factor];
  return { x: [middle - half, middle + half], y: null };
}

/** Return the distances of which uPlot chooses one: it draws no axis without, though the ticks are the page's. @param {[number, number]} ends */
function makeDistances([low, high]) {
  const most = high - low;
  return { space: 1, ...(most > 100 ? { incrs: [most / 2] } : {}) }; // its own list ends at 10 ** 32
}

/** @param {Line | null} line @param {Palette} palette */
function makeSeries(line, palette) {
  const facets = [{ scale: "x", auto: false }, { scale: "y", auto: false }];
  if (!line) return { facets, points: { show: false } };
  return { facets, stroke: palette.lines[pickColour(line.colour)], width: line.isFaint ? 0.8 : 1.8, alpha: line.isFaint ? 0.35 : 1, dash: pickDash(line.colour), points: { show: false } };
}

/** @param {string} font @returns {(text: string) => number} the width of a text in pixels */
function makeMeasure(font) {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return (text) => text.length * TEXT;
  context.font = font;
  return (text) => context.measureText(text).width;
}

/** @param {Plot} plot @returns {CanvasRenderingContext2D} that draws inside the axes alone, until it is restored */
function beginDrawing({ ctx, bbox }) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  return ctx;
}
