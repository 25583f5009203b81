// @ts-check
/**
 * A set: the curves of all its experiments, the best value so far, its points over their seeds, which parameters
 * decide, what was stopped early, and its leaderboard.
 */

import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatNumber, formatSpan } from "./format.js";
import { FrontPanel } from "./front.js";
import { GroupPanel } from "./groups.js";
import { ImportancePanel } from "./importance.js";
import { ParallelPanel } from "./parallel.js";
import { makeDuration, makeLink, makeProblem, makeState, makeTable } from "./parts.js";

/** @import { Curve, ResultList, ResultView } from "../wire.js" */

const PAUSE = 1000; // milliseconds between two readings at least: a set prints without a pause
const OWN_HEADS = ["Rank", "ID", "State", "Generation", "Parent", "Duration"]; // of the leaderboard
const FEW_ROWS = 100; // of the leaderboard, before the user asks for all

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
    this.showsAll = false;
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
    this.board = make("section", { "aria-label": "Leaderboard" });
    const panels = [this.front, this.groups, this.parallel].map(({ element }) => element);
    fill(page.place, this.picker, this.charts, ...panels, this.early, this.board);
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
      if (!this.board.firstChild) fill(this.board, makeProblem(error));
      feed.onReturn(error, () => this.read(), signal);
    }
  }

  async readAll() {
    const { id, signal, view } = this.page;
    const found = await get("/results", { of: id }, signal);
    const metric = this.pickMetric(found);
    this.showBoard(found);
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
      this.curves = curves = new ChartPanel(metric);
      this.best = best = new ChartPanel(`best ${metric} so far`);
      fill(this.charts, curves.element, best.element, this.importance.element);
    }
    const stopped = new Set(found.experiments.filter(isStopped).map((one) => one.id));
    const answer = await get(`/experiments/${encodeURIComponent(id)}/curves`, { metric }, signal);
    curves.show(answer.curves.map((one) => makeSeries(one, stopped.has(one.id))));
    best.show([{ name: "best", ...listBest(found.experiments, metric, goal) }]);
    best.element.hidden = !goal;
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
    this.parallel.show([...nameColumns(found.parameters, "parameters", found.metrics), `${best}${metric}`], trials);
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

  /** @param {ResultList} found */
  showBoard(found) {
    const rows = listBoard(found);
    const shown = this.showsAll ? rows : rows.slice(0, FEW_ROWS);
    const more = make("button", { type: "button", onclick: () => this.showAll(found) }, `Show all ${formatNumber(rows.length)}`);
    const { heads, numbers } = listHeads(found);
    fill(this.board, make("h2", {}, "Leaderboard"), makeTable(heads, shown, { caption: "Leaderboard", numbers }), shown.length < rows.length && more);
  }

  /** @param {ResultList} found */
  showAll(found) {
    this.showsAll = true;
    this.showBoard(found);
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
function makeSeries({ id, step, at, mean }, stopped) {
  const buckets = mean.map((value, place) => ({ mean: value, min: value, max: value, last_step: step[place], first_at: at[place], last_at: at[place] }));
  return { name: stopped ? `${id} (stopped early)` : id, buckets };
}

/**
 * Return the best value so far, one for each experiment that has ended. Where the first one is the best, the axis goes on to the
 * median of all: it shows how much better that is, and no single bad value makes it useless.
 * @param {ResultView[]} experiments @param {string} metric @param {string} goal
 * @returns {{buckets: import("./chart.js").Bucket[], range: number[]}}
 */
export function listBest(experiments, metric, goal) {
  const ended = experiments.flatMap((one) => {
    const value = bestOf(one, metric, goal);
    return one.ended_at && value !== null ? [{ end: one.ended_at, trial: Number(one.id.split(".")[1] ?? 0), value }] : [];
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

/**
 * Return the heads of columns: a name that another column has, too, gets that of its kind before it.
 * @param {string[]} names
 * @param {"metrics" | "parameters"} kind
 * @param {string[]} others names of the other kind
 */
function nameColumns(names, kind, others) {
  const taken = new Set([...OWN_HEADS, ...others].map((name) => name.toLowerCase()));
  return names.map((name) => (taken.has(name.toLowerCase()) ? `${kind}.${name}` : name));
}

/** @param {ResultList} found */
export function listHeads(found) {
  const lineage = hasGenerations(found) ? ["Generation", "Parent"] : [];
  const heads = ["Rank", "ID", "State", ...lineage, ...nameColumns(found.metrics, "metrics", found.parameters), ...nameColumns(found.parameters, "parameters", found.metrics), "Duration"];
  const begin = 3 + lineage.length;
  const numbers = heads.map((_, at) => at).filter((at) => at === 0 || (at >= begin && at < begin + found.metrics.length) || at === heads.length - 1 || heads[at] === lineage[0]);
  return { heads, numbers };
}

/** @param {ResultList} found */
function hasGenerations({ experiments }) {
  return experiments.some((one) => one.generation !== undefined);
}

/**
 * Return the number of a metric in the leaderboard: the value that ranks, as `riseml results` shows it; the last one of another metric.
 * @param {ResultView} one @param {string} name @param {ResultList} found
 */
export function readShown(one, name, { objectives }) {
  if (!objectives.some(({ metric }) => metric === name)) return findMetric(one, name)?.last;
  return (objectives.length > 1 ? one.scores[name] : one.value) ?? undefined;
}

/** @param {ResultList} found @returns {import("./parts.js").Cell[][]} */
function listBoard(found) {
  const lineage = (/** @type {ResultView} */ one) => [one.generation ?? "", one.parent ? makeLink(one.parent) : ""];
  const rows = found.experiments.map((one) => [
    one.rank ?? "",
    makeLink(one.id),
    isStopped(one) ? [makeState(one.state), make("span", { class: "soft" }, " stopped early")] : makeState(one.state),
    ...(hasGenerations(found) ? lineage(one) : []),
    ...found.metrics.map((name) => formatNumber(readShown(one, name, found))),
    ...found.parameters.map((name) => one.parameters[name] ?? ""),
    one.ended_at && one.seconds !== null ? formatSpan(one.seconds) : makeDuration(one.started_at, one.ended_at),
  ]);
  return rows.sort((one, other) => (Number(one[0]) || Infinity) - (Number(other[0]) || Infinity) || 0);
}
