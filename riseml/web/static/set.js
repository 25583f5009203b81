// @ts-check
/** A set: its leaderboard, the curves of all its experiments, and the best value so far. */

import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { formatNumber } from "./format.js";
import { makeDuration, makeLink, makeState, makeTable } from "./parts.js";

const MOST_CURVES = 60; // experiments whose curves are drawn

/** @type {import("./experiment.js").Tab} */
export function showSet(page) {
  const view = new SetView(page);
  view.read();
  return { update: () => view.read(), grow: () => view.read() };
}

class SetView {
  /** @param {import("./experiment.js").ExperimentPage} page */
  constructor(page) {
    this.page = page;
    this.chosen = "";
    /** @type {Map<string, {count: number, buckets: any[]}>} by `<id> <metric>` */
    this.histories = new Map();
    this.read = makeCoalesced(() => this.readAll());
    /** @type {ChartPanel | undefined} */
    this.curves = undefined;
    /** @type {ChartPanel | undefined} */
    this.best = undefined;
    this.select = make("select", { id: "metric", onchange: () => this.choose() });
    this.picker = make("label", { hidden: true }, "Metric ", this.select);
    this.charts = make("div", { class: "charts" });
    this.board = make("section", { "aria-label": "Leaderboard" });
    fill(page.place, this.picker, this.charts, this.board);
  }

  choose() {
    this.chosen = this.select.value;
    this.read();
  }

  async readAll() {
    const { id, signal } = this.page;
    const found = await get("/results", { of: id }, signal);
    fill(this.board, make("h2", {}, "Leaderboard"), makeBoard(found));
    const metric = this.pickMetric(found);
    if (metric) await this.drawCurves(found, metric);
  }

  /** @param {any} found */
  pickMetric(found) {
    const names = found.metrics;
    this.chosen ||= this.page.view.search?.metric ?? found.objective?.metric ?? names[0] ?? "";
    if (this.select.options.length !== names.length) {
      fill(this.select, names.map((/** @type {string} */ name) => make("option", { value: name, selected: name === this.chosen }, name)));
    }
    this.picker.hidden = names.length < 2;
    return names.includes(this.chosen) ? this.chosen : "";
  }

  /** @param {any} found @param {string} metric */
  async drawCurves(found, metric) {
    let { curves, best } = this;
    if (!curves || !best || curves.metric !== metric) {
      this.curves = curves = new ChartPanel(metric);
      this.best = best = new ChartPanel(`best ${metric} so far`);
      fill(this.charts, curves.element, best.element);
    }
    const shown = found.experiments.filter((/** @type {any} */ one) => findMetric(one, metric)).slice(0, MOST_CURVES);
    const series = await Promise.all(shown.map(async (/** @type {any} */ one) => ({ name: one.id, buckets: await this.readHistory(one, metric) })));
    curves.show(series);
    const goal = this.page.view.search?.goal ?? (found.objective?.metric === metric ? found.objective.goal : "");
    best.show([{ name: "best", buckets: listBest(found.experiments, metric, goal) }]);
    best.element.hidden = !goal;
  }

  /** @param {any} one @param {string} metric @returns {Promise<any[]>} */
  async readHistory(one, metric) {
    const count = findMetric(one, metric).count;
    const key = `${one.id} ${metric}`;
    const known = this.histories.get(key);
    if (known && known.count === count) return known.buckets;
    const path = `/experiments/${encodeURIComponent(one.id)}/metrics/history`;
    const { buckets } = await get(path, { metric }, this.page.signal);
    this.histories.set(key, { count, buckets });
    return buckets;
  }
}

/** @param {any} experiment @param {string} name */
function findMetric(experiment, name) {
  return experiment.metrics.find((/** @type {any} */ metric) => metric.name === name);
}

/** @param {any[]} experiments @param {string} metric @param {string} goal @returns {any[]} one value for each that ended */
function listBest(experiments, metric, goal) {
  const ended = experiments.filter((one) => one.ended_at && findMetric(one, metric)).sort((one, other) => one.ended_at.localeCompare(other.ended_at));
  let best = Number.NaN;
  return ended.map((one, at) => {
    const found = findMetric(one, metric);
    const value = goal === "minimize" ? found.min : found.max;
    if (Number.isNaN(best) || (goal === "minimize" ? value < best : value > best)) best = value;
    return { mean: best, min: best, max: best, last_step: at + 1, first_at: one.ended_at, last_at: one.ended_at };
  });
}

/** @param {any} found */
function makeBoard(found) {
  const heads = ["Rank", "ID", "State", ...found.metrics, ...found.parameters, "Duration"];
  const rows = found.experiments.map((/** @type {any} */ one) => [
    one.rank ?? "",
    makeLink(one.id),
    one.reason === "STOPPED_EARLY" ? [makeState(one.state), make("span", { class: "soft" }, " stopped early")] : makeState(one.state),
    ...found.metrics.map((/** @type {string} */ name) => formatNumber(findMetric(one, name)?.last)),
    ...found.parameters.map((/** @type {string} */ name) => one.parameters[name] ?? ""),
    makeDuration(one.started_at, one.ended_at),
  ]);
  const first = 3 + found.metrics.length;
  const numbers = heads.map((_, at) => at).filter((at) => at === 0 || (at >= 3 && at < first) || at === heads.length - 1);
  const sorted = [...rows].sort((one, other) => (Number(one[0]) || Infinity) - (Number(other[0]) || Infinity) || 0);
  return makeTable(heads, sorted, { caption: "Leaderboard", numbers });
}
