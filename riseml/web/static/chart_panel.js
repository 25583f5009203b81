// @ts-check
/** A chart with its title, its controls and the values under the pointer. */

import { drawChart, makeLine } from "./chart.js";
import { draw, fill, make, setText } from "./dom.js";
import { formatNumber, formatSpan } from "./format.js";

const MOST_NAMED = 8; // the most lines whose values are listed

export class ChartPanel {
  /** @param {string} metric */
  constructor(metric) {
    this.metric = metric;
    this.count = -1; // how many values the server had when the chart was drawn
    this.options = { isLog: false, isTime: false, smoothing: 0 };
    /** @type {import("./chart.js").Series[]} */
    this.series = [];
    this.place = make("div", { class: "plot", onpointermove: (/** @type {PointerEvent} */ event) => this.point(event), onpointerleave: () => this.leave() });
    this.values = make("p", { class: "values soft" });
    this.element = make("section", { class: "panel", "aria-label": `Metric ${metric}` }, make("div", { class: "line" }, make("h2", {}, metric), this.makeControls()), this.place, this.values);
  }

  makeControls() {
    const logarithmic = this.makeSwitch("log", "isLog");
    const time = this.makeSwitch("time", "isTime");
    const smooth = make("input", { type: "range", min: "0", max: "0.95", step: "0.05", value: "0", "aria-label": `Smoothing of ${this.metric}`, oninput: () => this.set("smoothing", Number(smooth.value)) });
    return make("div", { class: "controls" }, make("label", {}, "smooth ", smooth), logarithmic, time);
  }

  /** @param {string} label @param {"isLog" | "isTime"} option */
  makeSwitch(label, option) {
    const box = make("input", { type: "checkbox", onchange: () => this.set(option, box.checked) });
    return make("label", {}, box, ` ${label}`);
  }

  /** @param {"isLog" | "isTime" | "smoothing"} option @param {boolean | number} value */
  set(option, value) {
    this.options = { ...this.options, [option]: value };
    this.redraw();
  }

  /** @param {import("./chart.js").Series[]} series */
  show(series) {
    this.series = series;
    this.redraw();
  }

  redraw() {
    const lines = this.series.map((one) => makeLine(one, this.options));
    const last = lines.length === 1 ? lines[0].points.at(-1) : null;
    const label = `${this.metric}${last ? `, last ${formatNumber(last.y)}` : ` of ${lines.length} experiments`}`;
    this.chart = drawChart(lines, this.options, label);
    fill(this.place, this.chart.picture);
    this.leave();
  }

  /** @param {PointerEvent} event */
  point(event) {
    const box = this.place.getBoundingClientRect();
    const found = this.chart?.find((event.clientX - box.left) / box.width);
    if (!found || !this.chart) return;
    this.chart.picture.querySelector(".pointer")?.remove();
    const marks = found.rows.map((row) => draw("circle", { class: `line colour-${row.colour}`, cx: found.place, cy: row.place, r: 3.5 }));
    this.chart.picture.append(draw("g", { class: "pointer" }, draw("line", { x1: found.place, x2: found.place, y1: 10, y2: 210 }), marks));
    const at = this.options.isTime ? formatSpan(found.x) : `step ${formatNumber(found.x)}`;
    const rows = found.rows.slice(0, MOST_NAMED).map((row) => `${found.rows.length > 1 ? `${row.name} ` : ""}${formatNumber(row.y)}`);
    setText(this.values, `${at}: ${rows.join(" · ")}`);
  }

  leave() {
    this.chart?.picture.querySelector(".pointer")?.remove();
    const named = this.series.slice(0, MOST_NAMED).map((one, at) => make("span", { class: `key colour-${at}` }, one.name));
    const rest = this.series.length - named.length;
    const last = this.series[0]?.buckets.at(-1);
    if (this.series.length > 1) fill(this.values, named, rest > 0 && ` and ${rest} more`);
    else setText(this.values, last ? `last ${formatNumber(last.mean)}${last.last_step === null ? "" : ` at step ${formatNumber(last.last_step)}`}` : "");
  }
}
