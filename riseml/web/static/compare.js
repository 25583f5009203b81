// @ts-check
/** Several experiments side by side: their curves in one chart for each metric, and what differs between them. */

import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { MediaBoard } from "./media.js";
import { makeLink, makeState, makeTable } from "./parts.js";

/** @import { ComparisonView as Comparison, MetricBucket, MetricView } from "../wire.js" */

const MOST_COMPARED = 20; // experiments that the server puts side by side
const PAUSE = 3000; // milliseconds between two readings at least

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showComparison(main, page) {
  const count = new URLSearchParams(location.search).getAll("of").length;
  if (count < 2 || count > MOST_COMPARED) {
    const how = make("p", { class: "empty" }, `${count < 2 ? "Two experiments at least" : `At most ${MOST_COMPARED} experiments`} can be compared. Select them in the `, make("a", { href: "/table" }, "table"), " and press Compare.");
    fill(main, make("h1", {}, "Comparison"), how);
    return;
  }
  const news = page.feed.collect(page.signal);
  const view = new ComparisonView(main, page.signal);
  await view.read();
  const readSoon = page.feed.makeReading(async () => {
    await view.read();
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }, page.signal);
  news.passTo(({ changed, grown, reset }) => {
    if (reset || [...changed, ...grown].some((id) => view.names.includes(id))) readSoon();
  });
}

class ComparisonView {
  /** @param {HTMLElement} main @param {AbortSignal} signal */
  constructor(main, signal) {
    this.main = main;
    this.signal = signal;
    this.ids = new URLSearchParams(location.search).getAll("of");
    /** @type {string[]} IDs of the experiments that are compared */
    this.names = [];
    /** @type {Map<string, ChartPanel>} by metric */
    this.panels = new Map();
    /** @type {Map<string, {count: number, buckets: MetricBucket[]}>} curves by metric and ID, as JSON */
    this.curves = new Map();
    /** @type {string[]} */
    this.parameters = []; // that differ
    /** @type {Set<string>} metrics with further values than their charts show */
    this.grown = new Set();
    this.states = make("div");
    this.charts = make("div", { class: "charts" });
    this.differences = make("div");
    this.board = new MediaBoard(() => this.names, signal);
    this.media = make("section", { "aria-label": "Media", hidden: true }, make("h2", {}, "Media"), this.board.element);
  }

  async read() {
    const found = await get("/comparison", { of: this.ids }, this.signal);
    this.names = found.experiments.map((one) => one.id);
    this.parameters = found.parameters.map((one) => one.name);
    const rows = found.experiments.map((one) => [makeLink(one.id), one.project, makeState(one.state)]);
    fill(this.states, makeTable(["ID", "Project", "State"], rows, { caption: "Experiments" }));
    fill(this.differences, makeDifferences(found, ["Name", ...this.names]));
    if (!this.states.parentNode) fill(this.main, make("h1", {}, "Comparison"), this.states, this.charts, this.media, this.differences);
    await this.drawMetrics();
    if (this.board.isOld) await this.board.read().catch((error) => console.debug(error)); // the board says it; the rest of the view stays
    this.media.hidden = !this.board.named.length;
  }

  async drawMetrics() {
    /** @type {Map<string, import("./chart_data.js").Series[]>} */
    const found = new Map();
    for (const id of this.names) {
      const { experiments } = await get(`/experiments/${encodeURIComponent(id)}/metrics`, {}, this.signal);
      for (const metric of experiments[0]?.metrics ?? []) {
        if (await this.readCurve(id, metric)) this.grown.add(metric.name);
        const { buckets } = this.curves.get(JSON.stringify([metric.name, id])) ?? { buckets: [] };
        found.set(metric.name, [...(found.get(metric.name) ?? []), { name: id, buckets, last: { value: metric.last, step: metric.last_step } }]);
      }
    }
    for (const [name, series] of found) if (this.grown.delete(name)) this.findPanel(name).show(series);
  }

  /** Read a curve unless it is known; return true if it has further values. @param {string} id @param {MetricView} metric */
  async readCurve(id, { name, count }) {
    const key = JSON.stringify([name, id]);
    if (this.curves.get(key)?.count === count) return false;
    const { buckets } = await get(`/experiments/${encodeURIComponent(id)}/metrics/history`, { metric: name }, this.signal);
    this.curves.set(key, { count, buckets });
    return true;
  }

  /** @param {string} name @returns {ChartPanel} */
  findPanel(name) {
    const known = this.panels.get(name);
    if (known) return known;
    const panel = new ChartPanel(name, {
      kind: "comparison",
      metrics: () => [...this.panels.keys()],
      readAcross: async (metric) => this.names.map((id) => ({ name: id, buckets: this.curves.get(JSON.stringify([metric, id]))?.buckets ?? [] })),
      groups: () => [...this.parameters, "tag"],
      readGroups: async (by) => (await get("/results/curves", { of: this.names, metric: name, by }, this.signal)).groups,
    });
    this.panels.set(name, panel);
    this.charts.append(panel.element);
    return panel;
  }
}

/** @param {Comparison} found @param {string[]} heads */
function makeDifferences(found, heads) {
  return [
    makeSection("Parameters", heads, found.parameters.map((one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Metrics", heads, found.metrics.map((one) => [one.name, ...one.metrics.map((metric) => formatNumber(metric?.last))])),
    makeSection("Configuration", heads, found.config.map((one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Environment", heads, found.environment.map((one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Code", heads, found.code.map((one) => [one.path, ...one.versions.map(showValue)])),
  ];
}

/** @param {string | null} value */
function showValue(value) {
  return value === null ? make("span", { class: "soft" }, "none") : value;
}

/** @param {string} title @param {string[]} heads @param {import("./parts.js").Cell[][]} rows */
function makeSection(title, heads, rows) {
  return rows.length ? make("section", { "aria-label": title }, make("h2", {}, title), makeTable(heads, rows, { caption: title })) : null;
}
