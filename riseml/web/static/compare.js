// @ts-check
/** Several experiments side by side: their curves in one chart for each metric, and what differs between them. */

import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { makeLink, makeState, makeTable } from "./parts.js";

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showComparison(main, page) {
  const ids = new URLSearchParams(location.search).getAll("of");
  const found = await get("/comparison", { of: ids }, page.signal);
  const charts = make("div", { class: "charts" });
  const names = found.experiments.map((/** @type {any} */ one) => one.id);
  const heads = ["Name", ...names];
  fill(main,
    make("h1", {}, "Comparison"),
    makeTable(["ID", "Project", "State"], found.experiments.map((/** @type {any} */ one) => [makeLink(one.id), one.project, makeState(one.state)]), { caption: "Experiments" }),
    charts,
    makeSection("Parameters", heads, found.parameters.map((/** @type {any} */ one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Metrics", heads, found.metrics.map((/** @type {any} */ one) => [one.name, ...one.metrics.map((/** @type {any} */ metric) => formatNumber(metric?.last))])),
    makeSection("Configuration", heads, found.config.map((/** @type {any} */ one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Environment", heads, found.environment.map((/** @type {any} */ one) => [one.name, ...one.values.map(showValue)])),
    makeSection("Code", heads, found.code.map((/** @type {any} */ one) => [one.path, ...one.versions.map(showValue)])),
  );
  await drawMetrics(charts, names, page.signal);
}

/** @param {string | null} value */
function showValue(value) {
  return value === null ? make("span", { class: "soft" }, "none") : value;
}

/** @param {string} title @param {string[]} heads @param {any[][]} rows */
function makeSection(title, heads, rows) {
  return rows.length ? make("section", { "aria-label": title }, make("h2", {}, title), makeTable(heads, rows, { caption: title })) : null;
}

/** @param {HTMLElement} place @param {string[]} ids @param {AbortSignal} signal */
async function drawMetrics(place, ids, signal) {
  /** @type {Map<string, import("./chart.js").Series[]>} */
  const found = new Map();
  for (const id of ids) {
    const { experiments } = await get(`/experiments/${encodeURIComponent(id)}/metrics`, {}, signal);
    for (const metric of experiments[0]?.metrics ?? []) {
      const { buckets } = await get(`/experiments/${encodeURIComponent(id)}/metrics/history`, { metric: metric.name }, signal);
      found.set(metric.name, [...(found.get(metric.name) ?? []), { name: id, buckets }]);
    }
  }
  for (const [name, series] of found) {
    const panel = new ChartPanel(name);
    panel.show(series);
    place.append(panel.element);
  }
}
