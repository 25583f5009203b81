// @ts-check
/** Who uses the page, what they may change, whose experiments a view shows, and links for others. Only a team's server has several users. */

import { get, isTeam } from "./api.js";
import { make } from "./dom.js";
import { ask, linkTo } from "./parts.js";

/** @import { CallerView, ExperimentView } from "../wire.js" */

/** @typedef {{query: string, project: string}} Scope `query` is what the address says: empty: one's own, `all`, or `project:vision` */

/** @type {CallerView | null} */
let me = null;

/** Return who uses the page. @param {AbortSignal} [signal] @returns {Promise<CallerView>} */
export async function readMe(signal) {
  me ??= await get("/whoami", {}, signal);
  return me;
}

/** @param {URLSearchParams} query of the address @returns {Scope} whose experiments the view shows */
export function readScope(query) {
  const text = query.get("of") ?? "";
  if (!isTeam || !(text === "all" || /^project:./.test(text))) return { query: "", project: "" };
  return { query: text, project: text === "all" ? "" : text.slice("project:".length) };
}

/**
 * Return the choice between one's own experiments, those of a team project, and all; null: the server has one user.
 * @param {Scope} scope
 * @param {(scope: Scope) => void} choose
 */
export function makeScopeChoice(scope, choose) {
  if (!isTeam) return null;
  const select = make("select", { "aria-label": "Whose experiments", onchange: () => choose(readScope(new URLSearchParams({ of: select.value }))) });
  const add = (/** @type {string} */ value, /** @type {string} */ label) => select.append(make("option", { value, selected: value === scope.query }, label));
  add("", "mine");
  readMe()
    .then(({ projects }) => {
      const names = new Set(projects.map(({ project }) => project).concat(scope.project || []));
      for (const name of names) add(`project:${name}`, `project ${name}`);
    })
    .catch((error) => console.debug(error))
    .finally(() => add("all", "all that I see"));
  return select;
}

/** @param {string} id @returns {boolean} whether it names another user */
export function isForeign(id) {
  return !/^\d/.test(id);
}

/** @param {string} id @returns {string} the experiment or set that it is about: `paul.144` of `paul.144.3` */
export function topOf(id) {
  return id.split(".").slice(0, isForeign(id) ? 2 : 1).join(".");
}

/** @param {{id: string, user: string, team_project?: string | null, may_change?: boolean}} view @returns {string} why the user cannot change it; empty: they can */
export function explainRights(view) {
  if (view.may_change !== false) return "";
  if (!isForeign(view.id)) return "You are a viewer of this server, or have logged in with a key that only looks";
  const who = view.team_project ? `${view.user}, a maintainer of ${view.team_project} or an admin` : `${view.user} or an admin`;
  return `${view.id} is ${view.user}'s: ${who} may do this`;
}

/**
 * Disable buttons of what the user may not do, and say why.
 * @template {HTMLElement} T
 * @param {T[]} buttons
 * @param {string} reason empty: they may do it
 * @returns {T[]}
 */
export function guard(buttons, reason) {
  for (const button of reason ? buttons : []) {
    button.setAttribute("disabled", "");
    button.title = reason;
  }
  return buttons;
}

/** @param {ExperimentView} view @returns {HTMLElement | null} a button that gives a link for others; null: the server has one user */
export function makeShareButton(view) {
  if (!isTeam) return null;
  return make("button", { type: "button", "data-action": "copy link", onclick: () => share(view) }, "Copy link");
}

/** @param {ExperimentView} view */
function share(view) {
  const id = isForeign(view.id) ? view.id : `${view.user}.${view.id}`;
  const field = make("input", { type: "text", id: "link", readonly: true, value: location.origin + linkTo(id) });
  const form = make("div", { class: "form" }, make("label", { for: "link" }, make("span", {}, "Link"), field));
  ask({ title: `Link to ${id}`, text: describeReaders(view), yes: "Copy", form }, async () => {
    field.select();
    await navigator.clipboard.writeText(field.value).catch(() => {
      throw new Error("The browser does not let the page copy: press Ctrl+C, or Cmd+C.");
    });
  });
}

/** @param {ExperimentView} view @returns {string} who can open a link to it */
export function describeReaders({ user, team_project: project }) {
  const rest = "For all others, the page says that there is no such experiment.";
  if (!project) return `${user} and the admins of this server can open it. ${rest}`;
  return `${user}, the members and viewers of project ${project} and the admins of this server can open it; if the project is open, everyone who logs in can. ${rest}`;
}
