// @ts-check
/** The view of one experiment or one set: its present state, its parts under tabs, and its actions. */

import { makeLabelActions, makeLabels, makeNote } from "./annotation.js";
import { ApiError, get, isTeam } from "./api.js";
import { showConfig } from "./config.js";
import { fill, make } from "./dom.js";
import { countNoun } from "./format.js";
import { makeMainActions } from "./experiment_actions.js";
import { showExplanation } from "./explanation.js";
import { showFiles } from "./files.js";
import { showLog } from "./log.js";
import { showMedia } from "./media.js";
import { showOverview } from "./overview.js";
import { hasEnded, linkTo, makeAge, makeLink, makeProblem, makeRunTime, makeState } from "./parts.js";
import { makeProgress, makeRemarks, showInTitle } from "./progress.js";
import { explainRights, guard, isForeign, makeShareButton, readMe, topOf } from "./rights.js";
import { showSet } from "./set.js";
import { showShell } from "./shell.js";
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
  media: { label: "Media", show: showMedia },
  files: { label: "Files", show: showFiles },
  config: { label: "Configuration", show: showConfig },
  shell: { label: "Shell", show: showShell },
  explain: { label: "Explain", show: showExplanation },
};

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showExperiment(main, page) {
  const id = await findId(page.parts[1], page.signal);
  const part = page.parts[2] ?? "";
  const head = make("div", { class: "head" });
  const place = make("div", { class: "tab" });
  const changes = page.feed.collect(page.signal);
  const view = await readExperiment(id, page.signal).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return showAbsent(main, page.parts[1], error);
    throw error;
  });
  if (!view) return;
  const shown = { id, view, signal: page.signal, feed: page.feed, place };
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
    const concerns = (/** @type {string} */ one) => one === own || (isSet && topOf(one) === own);
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
 * Return the ID that an address names: without the user where they use the page, as in the answers of the server.
 * @param {string} text
 * @param {AbortSignal} signal
 */
async function findId(text, signal) {
  const [user, ...rest] = text.split(".");
  return isForeign(text) && rest.length && (await readMe(signal)).user === user ? rest.join(".") : text;
}

/**
 * Say that there is no such experiment: the same for one that the user does not see and for one that is not there.
 * @param {HTMLElement} main
 * @param {string} id
 * @param {ApiError} error
 */
function showAbsent(main, id, error) {
  const reasons = "Either it does not exist, or it is not shared with you. Its user shares it by running it in a team project in which you are, or an admin makes you a member of its project.";
  fill(main, make("section", { role: "alert" }, make("h1", {}, `No experiment ${id}`), make("p", { class: "sentence" }, `${error.message}.`), isTeam && make("p", {}, reasons), make("p", {}, make("a", { href: "/" }, "Experiments"))));
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
  const set = view.id !== topOf(view.id) && make("span", { class: "soft" }, " of set ", makeLink(topOf(view.id)));
  const kind = view.type === "set" ? "Set" : view.type === "experiment" ? "Experiment" : view.type;
  const title = make("h1", {}, `${kind} ${view.id}`, make("span", { class: "soft" }, ` ${view.project}`), makeLabels(view));
  const times = make("p", { class: "soft facts" }, isTeam && make("span", {}, `of ${view.user}`, view.team_project ? `, in project ${view.team_project}` : ""), make("span", {}, "submitted ", makeAge(view.created_at)), view.started_at && make("span", {}, "ran for ", makeRunTime(view)), set);
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
  const board = !isForeign(view.id) && (view.type === "tensorboard" ? !isDone : view.type !== "notebook" && view.started_at);
  const buttons = makeMainActions(view).filter((button) => button !== null);
  const reruns = buttons.filter((button) => button.getAttribute("data-action") === "rerun"); // of all that the user sees, as their own
  guard(buttons.filter((button) => !reruns.includes(button)), explainRights(view));
  if (isTeam) readMe().then(({ role, scope }) => guard(reruns, role === "viewer" || scope === "read" ? "You are a viewer of this server, or have logged in with a key that only looks" : ""), () => {});
  return make("div", { class: "actions" }, board && makeBoardLink([view.id]), buttons, makeLabelActions(view), makeShareButton(view));
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
