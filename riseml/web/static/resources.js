// @ts-check
/** What the jobs of an experiment use: a sparkline for each amount, and which job slows the others down. */

import { get } from "./api.js";
import { readClock } from "./clock.js";
import { draw, fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { formatBytes, formatNumber } from "./format.js";
import { hasEnded, linkTo, makeTable } from "./parts.js";

/** @import { ExperimentView, JobSamples, StragglerView, SampleHistory } from "../wire.js" */

const SPAN = 3600; // seconds that are shown of what runs
const LEAST_PAUSE = 8000; // milliseconds between two reads; the server keeps a sample each ten seconds
const [WIDTH, HEIGHT] = [96, 22]; // of a sparkline, in its own unit

/**
 * @typedef {{title: string, amount: "cpu" | "mem_used" | "gpu" | "gpu_mem_used" | "net_in" | "net_out" | "disk_read" | "disk_write", asked: (job: JobSamples) => number, format: (value: number) => string}} Column
 * `asked` is what the sparkline reaches at least
 */

/** @type {Column[]} */
const COLUMNS = [
  { title: "Cores", amount: "cpu", asked: (job) => job.cpus * 100, format: (value) => formatNumber(Number((value / 100).toPrecision(3))) },
  { title: "Memory", amount: "mem_used", asked: (job) => job.mem_mib * 2 ** 20, format: formatBytes },
  { title: "GPU", amount: "gpu", asked: () => 100, format: (value) => `${Math.round(value)} %` },
  { title: "GPU memory", amount: "gpu_mem_used", asked: () => 0, format: formatBytes },
  { title: "Network in", amount: "net_in", asked: () => 0, format: formatSpeed },
  { title: "Network out", amount: "net_out", asked: () => 0, format: formatSpeed },
  { title: "Disk read", amount: "disk_read", asked: () => 0, format: formatSpeed },
  { title: "Disk write", amount: "disk_write", asked: () => 0, format: formatSpeed },
];

/** Words beside a job that slows the others down, by the kind of the warning. @type {Record<string, string>} */
const MARKS = { behind: "furthest behind", "full-link": "line rate" };

/** Shows what jobs use, and updates it whenever something arrives from the server, at least every 15 s. */
export class ResourcePanel {
  /** @param {HTMLElement} place @param {import("./experiment.js").ExperimentPage} page */
  constructor(place, page) {
    this.place = place;
    this.page = page;
    this.readAt = -LEAST_PAUSE;
    this.isFinal = false; // True: the shown values were read after the end
    this.read = makeCoalesced(() => this.readAll());
    page.feed.onPulse(() => this.update(), page.signal);
  }

  update() {
    const now = performance.now();
    if (now - this.readAt < LEAST_PAUSE || document.hidden || this.isFinal) return;
    this.readAt = now;
    this.read();
  }

  async readAll() {
    const { view, signal } = this.page;
    const path = /** @type {const} */ (`/experiments/${encodeURIComponent(view.id)}`);
    const created = Date.parse(view.created_at) / 1000;
    const hasNow = hasEnded(view.state);
    const since = hasNow ? created : Math.max(created, readClock() / 1000 - SPAN);
    const history = await get(`${path}/samples`, { since: new Date(since * 1000).toISOString() }, signal);
    const { jobs } = /** @type {SampleHistory} */ (history);
    const { stragglers } = view.state === "RUNNING" ? await get(`${path}/stragglers`, {}, signal) : { stragglers: [] };
    this.isFinal = hasNow;
    if (!signal.aborted) fill(this.place, jobs.length ? [make("h2", {}, "Resources"), ...makeWarnings(stragglers), makeUse(jobs, view, stragglers)] : []);
  }
}

/** @param {StragglerView[]} stragglers */
function makeWarnings(stragglers) {
  return stragglers.map((one) => make("p", { class: "straggler" }, one.text));
}

/** @param {JobSamples[]} jobs @param {ExperimentView} view @param {StragglerView[]} stragglers */
function makeUse(jobs, view, stragglers) {
  const shown = COLUMNS.filter((column) => jobs.some((job) => job[column.amount].some((value) => value !== null)));
  const marked = new Map(stragglers.map((one) => [one.job, MARKS[one.kind]]));
  const rows = jobs.map((job) => {
    const name = job.id.slice(view.id.length + 1);
    const mark = marked.has(job.id) && make("span", { class: "mark", title: "it slows the others down" }, marked.get(job.id));
    return [[make("a", { href: linkTo(job.id, "log") }, name), mark], ...shown.map((column) => makeCell(job, name, column))];
  });
  return make("div", { class: "use" }, makeTable(["Job", ...shown.map((column) => column.title)], rows, { caption: "Resources" }));
}

/** @param {JobSamples} job @param {string} name @param {Column} column */
function makeCell(job, name, column) {
  const values = job[column.amount];
  const known = values.filter((value) => value !== null);
  if (!known.length) return "";
  const last = column.format(known[known.length - 1]);
  const label = `${column.title} of ${name}: last ${last}, highest ${column.format(Math.max(...known))}`;
  return make("div", { class: "spark" }, drawSparkline(job.time, values, column.asked(job), label), make("span", { class: "number" }, last));
}

/**
 * @param {number[]} times
 * @param {(number | null)[]} values null: unknown
 * @param {number} least the smallest value for the top of the picture
 * @param {string} label
 */
function drawSparkline(times, values, least, label) {
  const top = Math.max(least, ...values.map((value) => value ?? 0)) || 1;
  const first = times[0];
  const length = Math.max(1, times[times.length - 1] - first);
  const points = times.flatMap((time, at) => {
    const value = values[at];
    if (value === null) return [];
    return [`${round(((time - first) / length) * WIDTH)},${round(HEIGHT - 1 - (value / top) * (HEIGHT - 2))}`];
  });
  if (points.length === 1) points.unshift(`0,${points[0].split(",")[1]}`);
  return draw("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    draw("title", {}, label), draw("polyline", { points: points.join(" ") }));
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}

/** @param {number} rate bytes per second */
function formatSpeed(rate) {
  return `${formatBytes(Math.round(rate))}/s`;
}
