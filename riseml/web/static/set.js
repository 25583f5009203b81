// @ts-check
/**
 * A set: the curves of all its experiments, the best value so far, its points over their seeds, which parameters
 * decide, what was stopped early, and its leaderboard.
 */

import { rewriteAddress } from "./address.js";
import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { DataTable } from "./data_table.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatNumber } from "./format.js";
import { FrontPanel } from "./front.js";
import { GroupPanel } from "./groups.js";
import { ImportancePanel } from "./importance.js";
import { makeFailure } from "./overview.js";
import { ParallelPanel } from "./parallel.js";
import { linkTo, makeProblem } from "./parts.js";
import { makeSelectionActions } from "./selection.js";
import { makeState, readState, writeState } from "./table_state.js";

/** @import { Curve, ResultList, ResultView } from "../wire.js" */

const PAUSE = 1000; // milliseconds between two readings at least: a set prints without a pause
const USUAL = { ...makeState(), pinned: ["rank", "id"] };

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
    /** @type {string[]} */
    this.metrics = [];
    /** @type {string[]} */
    this.parameters = []; // whose values differ
    /** @type {Map<string, ResultView["metrics"]>} what experiments reported, by their IDs */
    this.lasts = new Map();
    /** @type {Set<string>} */
    this.stopped = new Set(); // IDs of experiments that were stopped early
    this.read = makeCoalesced(async () => {
      await this.readSafely();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    });
    /** @type {ChartPanel | undefined} */
    this.curves = undefined;
    /** @type {ChartPanel | undefined} */
    this.best = undefined;
    this.importance = new ImportancePanel(page.view.id, page.signal);
    this.front = new FrontPanel();
    this.groups = new GroupPanel(page.view.id, page.signal);
    this.parallel = new ParallelPanel();
    this.parallel.element.hidden = true;
    this.select = make("select", { id: "metric", onchange: () => this.choose() });
    this.picker = make("label", { hidden: true }, "Metric ", this.select);
    this.charts = make("div", { class: "charts" });
    this.early = make("section", { "aria-label": "Stopped early", hidden: true });
    this.problem = make("div");
    this.failure = make("div");
    fill(this.failure, makeFailure(page.view));
    this.table = this.makeBoard();
    const panels = [this.front, this.groups, this.parallel].map(({ element }) => element);
    fill(page.place, this.failure, this.problem, this.picker, this.charts, ...panels, this.early, this.board);
    this.table.read().catch((error) => this.table.showProblem(error));
  }

  /** Make the leaderboard: the table of the experiments of this set. */
  makeBoard() {
    const { id, signal, feed } = this.page;
    const actions = make("div", { class: "actions", role: "toolbar", "aria-label": "Selected experiments" });
    const table = new DataTable({
      signal,
      feed,
      caption: "Leaderboard",
      of: [id],
      state: readState(new URLSearchParams(location.search), USUAL),
      onState: (state) => {
        const query = writeState(state, USUAL);
        rewriteAddress(`${linkTo(id)}${query.size ? `?${query}` : ""}`);
      },
      onSelect: (ids, reason) => fill(actions, makeSelectionActions(ids, reason, () => table.clear())),
    });
    const bar = make("div", { class: "bar" }, make("h2", {}, "Leaderboard"), table.makeTools(), table.count, actions);
    this.board = make("section", { "aria-label": "Leaderboard", class: "board" }, bar, table.problem, table.notes, table.scroller);
    return table;
  }

  choose() {
    this.chosen = this.select.value;
    this.readSafely();
  }

  /** Read everything; show an error only if nothing is shown so far. */
  async readSafely() {
    const { signal, feed } = this.page;
    try {
      await this.readAll();
    } catch (error) {
      if (signal.aborted) return;
      if (!this.charts.firstChild) fill(this.problem, makeProblem(error));
      feed.onReturn(error, () => this.read(), signal);
    }
  }

  async readAll() {
    fill(this.failure, makeFailure(this.page.view));
    const { id, signal, view } = this.page;
    const found = await get("/results", { of: id }, signal);
    const metric = this.pickMetric(found);
    fill(this.problem);
    this.showEarly(found, metric);
    if (!metric) return;
    const goal = found.objectives.find((one) => one.metric === metric)?.goal ?? "";
    this.front.show(found.objectives, listPoints(found, view.search));
    this.showTrials(found, metric, goal);
    await this.drawCurves(found, metric, goal);
    await this.groups.update(found, metric);
    if (view.search) await this.importance.update(view.search);
  }

  /** @param {ResultList} found */
  pickMetric(found) {
    const names = found.metrics;
    this.chosen ||= this.page.view.search?.metric ?? found.objective?.metric ?? names[0] ?? "";
    if (this.select.options.length !== names.length) {
      fill(this.select, names.map((name) => make("option", { value: name, selected: name === this.chosen }, name)));
    }
    this.picker.hidden = names.length < 2;
    return names.includes(this.chosen) ? this.chosen : "";
  }

  /** @param {ResultList} found @param {string} metric @param {string} goal */
  async drawCurves(found, metric, goal) {
    const { id, signal } = this.page;
    let { curves, best } = this;
    if (!curves || !best || curves.metric !== metric) {
      this.curves = curves = new ChartPanel(metric, {
        kind: "set",
        metrics: () => this.metrics,
        readAcross: (name) => this.readCurves(name),
        groups: () => [...this.parameters, ...(this.parameters.includes("seed") ? ["point"] : []), "tag"],
        readGroups: async (by) => (await get("/results/curves", { of: id, metric, by }, signal)).groups,
      });
      this.best = best = new ChartPanel(`best ${metric} so far`, { kind: "best of a set", xTitle: "ended experiments" });
      fill(this.charts, curves.element, best.element, this.importance.element);
    }
    this.metrics = found.metrics;
    this.lasts = new Map(found.experiments.map((one) => [one.id, one.metrics]));
    this.parameters = found.parameters;
    this.stopped = new Set(found.experiments.filter(isStopped).map((one) => one.id));
    curves.show(await this.readCurves(metric));
    best.show([{ name: "best", ...listBest(found.experiments, metric, goal) }]);
    best.element.hidden = !goal;
  }

  /** @param {string} metric @returns {Promise<import("./chart_data.js").Series[]>} */
  async readCurves(metric) {
    const { id, signal } = this.page;
    const answer = await get(`/experiments/${encodeURIComponent(id)}/curves`, { metric }, signal);
    return answer.curves.map((one) => {
      const last = this.lasts.get(one.id)?.find(({ name }) => name === metric);
      return { ...makeSeries(one, this.stopped.has(one.id)), last: last && { value: last.last, step: last.last_step } };
    });
  }

  /** @param {ResultList} found @param {string} metric @param {string} goal */
  showTrials(found, metric, goal) {
    const ended = found.experiments.filter((one) => one.ended_at && findMetric(one, metric));
    const sign = goal === "minimize" ? 1 : -1;
    const trials = ended.map((one) => ({
      id: one.id,
      values: [...found.parameters.map((name) => one.parameters[name] ?? null), bestOf(one, metric, goal)],
    }));
    const last = found.parameters.length;
    const value = (/** @type {import("./parallel.js").Trial} */ trial) => (trial.values[last] === null ? Infinity : sign * Number(trial.values[last]));
    trials.sort((one, other) => value(one) - value(other));
    this.parallel.element.hidden = !found.parameters.length || trials.length < 2;
    const best = { minimize: "least ", maximize: "best " }[goal] ?? "last ";
    this.parallel.show([...found.parameters.map((name) => (found.metrics.includes(name) ? `parameters.${name}` : name)), `${best}${metric}`], trials, goal ? "best" : "largest");
  }

  /** @param {ResultList} found @param {string} metric */
  showEarly(found, metric) {
    const stopped = found.experiments.filter(isStopped);
    this.early.hidden = !stopped.length;
    if (!stopped.length) return;
    /** @type {Map<number, number>} how many stopped at each step */
    const steps = new Map();
    for (const one of stopped) {
      const step = findMetric(one, metric)?.last_step;
      if (typeof step === "number") steps.set(step, (steps.get(step) ?? 0) + 1);
    }
    const longest = Math.max(0, ...found.experiments.map((one) => findMetric(one, metric)?.last_step ?? 0));
    const parts = [...steps].sort(([one], [other]) => one - other).map(([step, count]) => `${count} at step ${formatNumber(step)}`);
    const where = parts.length ? `: ${parts.join(", ")}; the longest experiment has ${countNoun(longest, "step")}` : "";
    const sentence = `${stopped.length} of ${countNoun(found.experiments.length, "experiment")} ${stopped.length === 1 ? "was" : "were"} stopped early, because others did better${where}.`;
    fill(this.early, make("h2", {}, "Stopped early"), make("p", {}, sentence));
  }
}

/** @param {ResultView} experiment */
function isStopped(experiment) {
  return experiment.reason === "STOPPED_EARLY";
}

/** @param {ResultView} experiment @param {string} name */
function findMetric(experiment, name) {
  return experiment.metrics.find((metric) => metric.name === name);
}

/** @param {ResultView} experiment @param {string} metric @param {string} goal @returns {number | null} */
function bestOf(experiment, metric, goal) {
  const value = goal ? (experiment.value ?? experiment.scores[metric]) : findMetric(experiment, metric)?.last;
  return typeof value === "number" ? value : null;
}

/**
 * Return a point for each experiment that has a rank; with several seeds one for the means of each trial whose runs all
 * have one, as the search compares them.
 * @param {ResultList} found @param {import("../wire.js").SearchView | null | undefined} search @returns {import("./front.js").Point[]}
 */
export function listPoints({ objectives, experiments }, search) {
  if (objectives.length < 2) return [];
  const ranked = experiments.filter((one) => one.rank);
  const read = (/** @type {ResultView} */ one) => objectives.map(({ metric }) => one.scores[metric]);
  if (!search || search.repeat < 2) return ranked.map((one) => ({ id: one.id, values: read(one), first: one.rank === 1 }));
  const sub = (/** @type {ResultView} */ { id }) => Number(id.split(".")[1]);
  /** @type {Map<string, ResultView[]>} */
  const trials = new Map();
  for (const one of [...ranked].sort((run, other) => sub(run) - sub(other))) {
    const { seed, ...point } = one.parameters;
    const key = JSON.stringify(point);
    trials.set(key, [...(trials.get(key) ?? []), one]);
  }
  return [...trials.values()].flatMap((runs) => {
    if (runs.length < search.repeat) return [];
    const values = objectives.map((_, at) => runs.reduce((sum, run) => sum + read(run)[at] / runs.length, 0));
    return [{ id: runs[0].id, values, first: search.front.includes(runs[0].id) }];
  });
}

/** @param {Curve} curve @param {boolean} stopped */
export function makeSeries({ id, step, at, mean, min, max, not_finite: lost }, stopped) {
  const buckets = mean.map((value, place) => ({ mean: value, min: min[place], max: max[place], last_step: step[place], first_at: at[place], last_at: at[place], not_finite: lost[place] }));
  return { name: stopped ? `${id} (stopped early)` : id, buckets };
}

/**
 * Return the best value so far, one for each experiment that has ended. Where the first one is the best, the axis goes on to the
 * median of all: it shows how much better that is, and no single bad value makes it useless.
 * @param {ResultView[]} experiments @param {string} metric @param {string} goal
 * @returns {{buckets: import("./chart_data.js").Bucket[], range: number[]}}
 */
export function listBest(experiments, metric, goal) {
  const ended = experiments.flatMap((one) => {
    const value = bestOf(one, metric, goal);
    return one.ended_at && value !== null ? [{ end: one.ended_at, trial: Number(one.id.split(".").at(-1)), value }] : [];
  });
  ended.sort((one, other) => one.end.localeCompare(other.end) || one.trial - other.trial); // ends are whole seconds
  const sorted = ended.map(({ value }) => value).sort((one, other) => one - other);
  const range = sorted.length ? [sorted[Math.floor((sorted.length - 1) / 2)]] : [];
  let best = Number.NaN;
  const buckets = ended.flatMap(({ end, value }, at) => {
    const former = best;
    if (Number.isNaN(best) || (goal === "minimize" ? value < best : value > best)) best = value;
    const steps = Number.isNaN(former) || former === best ? [best] : [former, best]; // draw a step, not a slope
    return steps.map((mean) => ({ mean, min: mean, max: mean, last_step: at + 1, first_at: end, last_at: end }));
  });
  return { buckets, range };
}
