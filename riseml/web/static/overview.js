// @ts-check
/** The overview of one experiment: why it failed, its metrics, its jobs and their timeline. */

import { get } from "./api.js";
import { appendColoured, stripControls, takeLastState } from "./ansi.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { formatMemory, formatNumber } from "./format.js";
import { makeAdviceAction } from "./experiment_actions.js";
import { hasEnded, linkTo, makeDuration, makeState, makeTable, makeText, onWidth } from "./parts.js";
import { ResourcePanel } from "./resources.js";
import { makeTimeline } from "./timeline.js";

/** @import { EventView, ExperimentView } from "../wire.js" */

const METRIC_PAUSE = 500; // milliseconds between two readings at least: a training may print without a pause
const LEAST_PAUSE = 10_000; // milliseconds between two redraws of the timeline of running jobs

/** @type {import("./experiment.js").Tab} */
export function showOverview(page) {
  const failure = make("div");
  const written = make("div");
  const charts = make("div", { class: "charts" });
  const jobs = make("section", { "aria-label": "Jobs" });
  const use = make("section", { "aria-label": "Resources" });
  const life = make("section", { "aria-label": "Timeline" });
  const parameters = make("section", { "aria-label": "Parameters" });
  fill(page.place, failure, written, charts, jobs, use, life, parameters);
  const panels = new MetricPanels(charts, page);
  const resources = new ResourcePanel(use, page);
  const timeline = new TimelinePanel(life, page);
  const update = () => {
    fill(failure, makeFailure(page.view));
    fill(written, (page.view.written?.sentences ?? []).map((sentence) => make("p", {}, stripControls(sentence))));
    fill(jobs, make("h2", {}, "Jobs ", make("span", { class: "soft" }, countRoles(page.view.jobs))), makeJobs(page.view));
    fill(parameters, makeParameters(page.view));
    timeline.read();
    panels.update();
    resources.update();
  };
  update();
  return { update, grow: () => panels.update() };
}

/** @param {ExperimentView} view @returns {HTMLElement | null} why it failed, and what to do; null: it did not */
export function makeFailure(view) {
  if (view.state !== "FAILED") return null;
  const lines = make("pre", { class: "lines", tabindex: "0" });
  for (const line of view.last_lines) {
    appendColoured(lines, takeLastState(line));
    lines.append("\n");
  }
  const others = view.jobs.filter((job) => job.reason === "CASCADE").length;
  return make("section", { class: "failure", "aria-label": "Failure" },
    make("h2", {}, view.cause ? `${view.cause} failed first` : "It failed"),
    make("p", {}, view.message),
    view.advice && make("p", { class: "advice" }, makeText(view.advice), " ", makeAdviceAction(view)),
    view.last_lines.length > 0 && lines,
    others > 0 && make("details", {}, make("summary", {}, `${others} ${view.cause ? "other " : ""}${others === 1 ? "job" : "jobs"} ended because of it`),
      make("ul", {}, view.jobs.filter((job) => job.reason === "CASCADE").map((job) => make("li", {}, job.name)))),
    make("p", {}, make("a", { href: linkTo(view.cause ? `${view.id}.${view.cause}` : view.id, "log") }, "Its log")),
  );
}

/** @param {{name: string}[]} jobs @returns {string} such as `1 master, 3 workers` */
function countRoles(jobs) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { name } of jobs) counts.set(name.split(".")[0], (counts.get(name.split(".")[0]) ?? 0) + 1);
  counts.delete("build");
  return counts.size > 1 ? [...counts].map(([role, count]) => `${count} ${role}`).join(", ") : "";
}

/** @param {ExperimentView} view */
function makeJobs(view) {
  const rows = view.jobs.map((job) => [
    make("a", { href: linkTo(job.id, "log"), title: "its log" }, job.name),
    makeState(job.state),
    stripControls(job.message.split("\n")[0]),
    job.host ?? "",
    formatNumber(job.cpus),
    formatMemory(job.mem_mib),
    job.gpus || "",
    makeDuration(job.started_at, job.ended_at),
    job.attempt > 1 ? job.attempt : "",
  ]);
  const heads = ["Job", "State", "Why", "Host", "Cores", "Memory", "GPUs", "Duration", "Attempt"];
  return makeTable(heads, rows, { caption: "Jobs", numbers: [4, 5, 6, 7, 8] });
}

/** @param {ExperimentView} view */
function makeParameters(view) {
  const found = Object.entries(view.parameters);
  if (!found.length) return null;
  return [make("h2", {}, "Parameters"), makeTable(["Name", "Value"], found, { caption: "Parameters" })];
}

/** The timeline of the jobs; the bar of a running job grows. */
class TimelinePanel {
  /** @param {HTMLElement} place @param {import("./experiment.js").ExperimentPage} page */
  constructor(place, page) {
    this.place = place;
    this.page = page;
    this.drawnAt = Infinity;
    /** @type {EventView[]} */
    this.events = [];
    this.read = page.feed.makeReading(async () => {
      const { events } = await get(`/experiments/${encodeURIComponent(page.id)}/events`, {}, page.signal);
      this.events = events;
      this.show();
    }, page.signal);
    page.feed.onPulse(() => this.goOn(), page.signal);
    onWidth(place, () => this.drawnAt < Infinity && this.show());
  }

  show() {
    this.drawnAt = performance.now();
    fill(this.place, make("h2", {}, "Timeline"), makeTimeline(this.events, this.page.view, this.place.clientWidth || undefined));
  }

  /** Redraw the timeline up to now. */
  goOn() {
    if (!hasEnded(this.page.view.state) && performance.now() - this.drawnAt > LEAST_PAUSE) this.show();
  }
}

/** One chart for each metric of the experiment; a new metric gets its chart when it appears. */
class MetricPanels {
  /** @param {HTMLElement} place @param {import("./experiment.js").ExperimentPage} page */
  constructor(place, page) {
    this.place = place;
    this.page = page;
    /** @type {Map<string, ChartPanel>} */
    this.panels = new Map();
    /** @type {string[]} */
    this.names = []; // of the metrics
    this.read = page.feed.makeReading(async () => {
      await this.readAll();
      await new Promise((resolve) => setTimeout(resolve, METRIC_PAUSE));
    }, page.signal);
  }

  update() {
    this.read();
  }

  async readAll() {
    const { id, signal } = this.page;
    const path = /** @type {const} */ (`/experiments/${encodeURIComponent(id)}/metrics`);
    const { experiments } = await get(path, {}, signal);
    const metrics = experiments[0]?.metrics ?? [];
    this.names = metrics.map(({ name }) => name);
    for (const metric of metrics) {
      if (signal.aborted) return;
      let panel = this.panels.get(metric.name);
      if (!panel) {
        panel = new ChartPanel(metric.name, { kind: "experiment", metrics: () => this.names, readAcross: (name) => this.readAcross(name) });
        this.panels.set(metric.name, panel);
        this.place.append(panel.element);
      }
      if (panel.count === metric.count) continue;
      const { buckets } = await get(`${path}/history`, { metric: metric.name }, signal);
      panel.count = metric.count;
      panel.show([{ name: id, buckets, last: { value: metric.last, step: metric.last_step } }]);
    }
  }
  /** Read another metric, over which one is drawn. @param {string} metric */
  async readAcross(metric) {
    const { id, signal } = this.page;
    const { buckets } = await get(`/experiments/${encodeURIComponent(id)}/metrics/history`, { metric }, signal);
    return [{ name: id, buckets }];
  }
}
