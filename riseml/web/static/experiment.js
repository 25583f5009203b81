// @ts-check
/** The view of one experiment or one set: its present state, its parts under tabs, and its actions. */

import { makeLabelActions, makeLabels, makeNote } from "./annotation.js";
import { get } from "./api.js";
import { showConfig } from "./config.js";
import { fill, make } from "./dom.js";
import { countNoun } from "./format.js";
import { makeMainActions } from "./experiment_actions.js";
import { showExplanation } from "./explanation.js";
import { showFiles } from "./files.js";
import { showLog } from "./log.js";
import { showOverview } from "./overview.js";
import { hasEnded, linkTo, makeAge, makeLink, makeProblem, makeRunTime, makeState } from "./parts.js";
import { makeProgress, makeRemarks, showInTitle } from "./progress.js";
import { showSet } from "./set.js";
import { showShell } from "./shell.js";
import { numberOf } from "./store.js";
import { makeBoardLink } from "./tensorboard.js";

/** @import { ExperimentView } from "../wire.js" */

/**
 * @typedef {object} ExperimentPage what a tab gets
 * @property {string} id
 * @property {ExperimentView} view the experiment; it is replaced when it changes
 * @property {AbortSignal} signal
 * @property {import("./feed.js").Feed} feed
 * @property {HTMLElement} place
 */
/** @typedef {(page: ExperimentPage) => {update?: () => void, grow?: () => void}} Tab shows a tab; returns what to call when the experiment changes or its log grows */

/** @type {Record<string, {label: string, show: Tab}>} */
const TABS = {
  "": { label: "Overview", show: showOverview },
  log: { label: "Log", show: showLog },
  files: { label: "Files", show: showFiles },
  config: { label: "Configuration", show: showConfig },
  shell: { label: "Shell", show: showShell },
  explain: { label: "Explain", show: showExplanation },
};

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showExperiment(main, page) {
  const [, user, id] = /^(?:([^\d.][^.]*)\.)?(.*)$/s.exec(page.parts[1]) ?? ["", "", page.parts[1]];
  if (user && (await get("/whoami", {}, page.signal)).user !== user) {
    fill(main, showForeign(page.parts[1]));
    return;
  }
  const part = page.parts[2] ?? "";
  const head = make("div", { class: "head" });
  const place = make("div", { class: "tab" });
  const changes = page.feed.collect(page.signal);
  const shown = { id, view: await readExperiment(id, page.signal), signal: page.signal, feed: page.feed, place };
  const isSet = shown.view.type === "set";
  const tab = isSet ? { show: showSet } : (Object.hasOwn(TABS, part) ? TABS[part] : TABS[""]);
  fill(main, head, isSet ? null : makeTabs(id, part), place);
  fillHead(head, shown.view);
  const news = tab.show(shown);
  const refresh = page.feed.makeReading(async () => {
    shown.view = await readExperiment(id, page.signal);
    fillHead(head, shown.view);
    news.update?.();
  }, page.signal);
  keepProgress(() => shown.view, refresh, page.signal);
  changes.passTo(({ changed, grown, reset }) => {
    const own = shown.view.id; // without the job that the address may name
    const concerns = (/** @type {string} */ one) => one === own || (isSet && numberOf(one) === numberOf(own));
    if (reset || changed.some(concerns)) refresh();
    if (reset || grown.some(concerns)) news.grow?.();
  });
}

const PROGRESS_EVERY = 5000; // milliseconds

/**
 * Read an experiment that runs again and again: how far it is changes with no change of a state.
 * @param {() => ExperimentView} find @param {() => void} refresh @param {AbortSignal} signal
 */
function keepProgress(find, refresh, signal) {
  const timer = setInterval(() => {
    if (find().state === "RUNNING" && find().type === "experiment") refresh();
  }, PROGRESS_EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/**
 * The parts and actions of the view name an experiment without its user, and so the caller's own.
 * @param {string} id of an experiment of another user
 */
function showForeign(id) {
  const how = make("p", {}, "On the command line ", make("code", {}, `riseml show ${id}`), " and ", make("code", {}, `riseml logs ${id}`), " show it, if it is shared with you.");
  return make("section", {}, make("h1", {}, id), make("p", { class: "sentence" }, "This page shows your own experiments, and this one belongs to another user."), how);
}

/** @param {string} id @param {AbortSignal} signal */
function readExperiment(id, signal) {
  return get(`/experiments/${encodeURIComponent(id)}`, {}, signal);
}

/** @param {string} id @param {string} part */
function makeTabs(id, part) {
  const links = Object.entries(TABS).map(([name, { label }]) =>
    make("a", { href: linkTo(id, name), "aria-current": name === part ? "page" : null }, label),
  );
  return make("nav", { class: "tabs", "aria-label": `Parts of experiment ${id}` }, links);
}

/** @param {HTMLElement} head @param {ExperimentView} view */
function fillHead(head, view) {
  const set = view.id.includes(".") && make("span", { class: "soft" }, " of set ", makeLink(String(numberOf(view.id))));
  const kind = view.type === "set" ? "Set" : view.type === "experiment" ? "Experiment" : view.type;
  const title = make("h1", {}, `${kind} ${view.id}`, make("span", { class: "soft" }, ` ${view.project}`), makeLabels(view));
  const times = make("p", { class: "soft facts" }, make("span", {}, "submitted ", makeAge(view.created_at)), view.started_at && make("span", {}, "ran for ", makeRunTime(view)), set);
  const sentence = make("p", { class: "sentence", role: "status" }, makeState(view.state), make("span", {}, describe(view)));
  fill(head, make("div", { class: "line" }, title, makeActions(view)), sentence, makeProgress(view), makeRemarks(view), times, makeNote(view));
  showInTitle(view);
}

/** @param {ExperimentView} view @returns {string} what it does now, in one sentence */
export function describe(view) {
  const jobs = view.jobs.filter((job) => job.name !== "build");
  const hosts = new Set(jobs.map((job) => job.host).filter(Boolean));
  if (view.state === "RUNNING" && jobs.length) {
    const running = jobs.filter((job) => job.state === "RUNNING").length;
    const where = hosts.size === 1 ? [...hosts][0] : countNoun(hosts.size, "host");
    return `${running === jobs.length ? "" : `${running} of `}${countNoun(jobs.length, "job")} ${jobs.length === 1 ? "runs" : "run"} on ${where}.`;
  }
  const first = String(view.message || "").split("\n")[0];
  return /[.!?]$/.test(first) || !first ? first : `${first}.`;
}

/** @param {ExperimentView} view */
function makeActions(view) {
  const isDone = hasEnded(view.state) && (!view.search || view.search.end);
  const board = view.type === "tensorboard" ? !isDone : view.type !== "notebook" && view.started_at;
  return make("div", { class: "actions" }, board && makeBoardLink([view.id]), makeMainActions(view), makeLabelActions(view));
}

/**
 * Show an answer of the server in an element, or why the request failed.
 * @param {ExperimentPage} page
 * @param {HTMLElement} place
 * @param {() => Promise<import("./dom.js").Child[]>} read
 */
export async function showSoon(page, place, read) {
  const { signal, feed } = page;
  try {
    const found = await read();
    if (!signal.aborted) fill(place, found);
  } catch (error) {
    if (signal.aborted) return;
    fill(place, makeProblem(error));
    feed.onReturn(error, () => showSoon(page, place, read), signal);
  }
}
