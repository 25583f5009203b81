// @ts-check
/** What a user has chosen for a chart: kept in the address, which can be sent, and in this browser. */

import { rewriteAddress } from "./address.js";
import { STEP } from "./chart_data.js";

const KEY = "riseml-charts";
const MOST_KEPT = 200; // charts of which the browser keeps the settings
const MOST_SMOOTHING = 0.999;
const BANDS = ["range", "error", "none"];

/**
 * @typedef {object} ChartSettings
 * @property {boolean} isLog
 * @property {string} x `step`, `time` or a metric
 * @property {number} smoothing weight of what was before, from 0 to 0.999
 * @property {boolean} ignoresOutliers when the axis is chosen
 * @property {boolean} isSorted the legend, by value
 * @property {string} by groups of the curves: a parameter or `tag`; empty: none
 * @property {string} band of a group: `range`, `error` or `none`
 * @property {boolean} showsMembers the curves of a group beside its mean
 * @property {string[]} hidden names of curves
 * @property {import("./chart_axes.js").Zoom | null} zoom
 */

/** @type {ChartSettings} */
export const PLAIN = { isLog: false, x: STEP, smoothing: 0, ignoresOutliers: false, isSorted: false, by: "", band: "range", showsMembers: false, hidden: [], zoom: null };

/** @type {[string, "isLog" | "ignoresOutliers" | "isSorted" | "showsMembers"][]} */
const SWITCHES = [["log", "isLog"], ["inliers", "ignoresOutliers"], ["sorted", "isSorted"], ["members", "showsMembers"]];

/** @param {ChartSettings} settings @param {boolean} isWhole with what belongs to these curves alone @returns {string} only what differs from the usual */
export function writeSettings(settings, isWhole) {
  const { x, smoothing, by, band, hidden, zoom } = settings;
  const query = new URLSearchParams();
  for (const [word, name] of SWITCHES) if (settings[name]) query.set(word, "1");
  if (x !== PLAIN.x) query.set("x", x);
  if (smoothing) query.set("smooth", String(smoothing));
  if (by) query.set("by", by);
  if (band !== PLAIN.band) query.set("band", band);
  if (isWhole) for (const name of hidden) query.append("hide", name);
  if (isWhole && zoom) query.set("zoom", [...zoom.x, ...(zoom.y ?? [])].join(" "));
  return query.toString();
}

/** @param {string} text from an address, which anybody may have written @returns {ChartSettings} */
export function parseSettings(text) {
  const query = new URLSearchParams(text);
  const smoothing = Number(query.get("smooth"));
  const band = query.get("band") ?? "";
  const switches = Object.fromEntries(SWITCHES.map(([word, name]) => [name, query.get(word) === "1"]));
  return {
    ...PLAIN,
    ...switches,
    x: query.get("x") || PLAIN.x,
    smoothing: smoothing > 0 ? Math.min(MOST_SMOOTHING, smoothing) : 0,
    by: query.get("by") ?? "",
    band: BANDS.includes(band) ? band : PLAIN.band,
    hidden: query.getAll("hide"),
    zoom: parseZoom(query.get("zoom") ?? ""),
  };
}

/** @param {string} text @returns {import("./chart_axes.js").Zoom | null} */
function parseZoom(text) {
  const [x0, x1, y0, y1] = text.split(" ").map(Number);
  if (!(Number.isFinite(x0) && x0 < x1 && Number.isFinite(x1))) return null;
  return { x: [x0, x1], y: Number.isFinite(y0) && Number.isFinite(y1) && y0 < y1 ? [y0, y1] : null };
}

/** @param {string} kind of view @param {string} metric @returns {ChartSettings} those of the address, else those of the browser */
export function readSettings(kind, metric) {
  const text = new URLSearchParams(location.search).get(`chart.${metric}`);
  return parseSettings(text ?? readKept()[`${kind} ${metric}`] ?? "");
}

/** @param {string} kind @param {string} metric @param {ChartSettings} settings */
export function keepSettings(kind, metric, settings) {
  const query = new URLSearchParams(location.search);
  const text = writeSettings(settings, true);
  const kept = readKept();
  const others = Object.entries(kept).filter(([name]) => name !== `${kind} ${metric}`).slice(1 - MOST_KEPT);
  localStorage.setItem(KEY, JSON.stringify(Object.fromEntries([...others, [`${kind} ${metric}`, writeSettings(settings, false)]])));
  query.delete(`chart.${metric}`);
  if (text) query.set(`chart.${metric}`, text);
  rewriteAddress(`${location.pathname}${query.size ? `?${query}` : ""}`);
}

/** @returns {Record<string, string>} */
function readKept() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(Object(kept)).filter((pair) => typeof pair[1] === "string"));
  } catch {
    return {}; // another program wrote it
  }
}
