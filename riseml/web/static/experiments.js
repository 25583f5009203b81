// @ts-check
/** The view of all experiments: a live table of states, parameters, metrics and whatever else the user chooses. */

import { rewriteAddress } from "./address.js";
import { DataTable } from "./data_table.js";
import { fill, make } from "./dom.js";
import { makeScopeChoice, readScope } from "./rights.js";
import { openViews, readViews } from "./saved_views.js";
import { makeSelectionActions } from "./selection.js";
import { makeState, readState, writeState } from "./table_state.js";

/** @import { TableState } from "./table_state.js" */
/** @import { Scope } from "./rights.js" */

/** Show all experiments. @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showExperiments(main, page) {
  const query = new URLSearchParams(location.search);
  const place = { path: location.pathname, scope: readScope(query), project: query.get("project") ?? "" };
  query.delete("project");
  query.delete("of");
  const usual = makeUsual(place.scope);
  let hasDefault = false; // a view is saved with which the table begins
  const write = (/** @type {TableState} */ state) => writeAddress(place, writeState(state, usual), hasDefault);
  const actions = make("div", { class: "actions", role: "toolbar", "aria-label": "Selected experiments" });
  const table = new DataTable({
    signal: page.signal,
    feed: page.feed,
    caption: "Experiments",
    of: [],
    isWholePage: true,
    project: place.project,
    scope: place.scope,
    state: readState(query, usual),
    onState: (state) => rewriteAddress(write(state)),
    onSelect: (ids, reason) => fill(actions, makeSelectionActions(ids, reason, () => table.clear())),
  });
  const views = make("button", { type: "button", "data-action": "views", onclick: () => openViews(place.project, String(writeState(table.state, usual))) }, "Views");
  const link = make("a", { hidden: true });
  const move = (/** @type {string} */ address) => {
    link.href = address;
    link.click();
  };
  const scope = makeScopeChoice(place.scope, (chosen) => move(writeAddress({ ...place, scope: chosen }, writeState({ ...table.state, sort: makeUsual(chosen).sort }, makeUsual(chosen)), false)));
  const picker = make("span", { class: "grouping" });
  fill(main, make("div", { class: "bar" }, make("h1", {}, "Experiments"), scope, table.makeTools(), picker, views, link, table.count, actions), table.problem, table.notes, table.scroller);
  const saved = await readViews(place.project, page.signal).catch((error) => table.showProblem(error));
  if (saved) fill(picker, makePicker(place.project, saved.projects, (project) => move(writeAddress({ ...place, project }, new URLSearchParams(), false))));
  hasDefault = Boolean(saved?.begin);
  if (saved?.begin && !query.size && table.isUntouched) {
    table.adopt(readState(new URLSearchParams(saved.begin), usual));
    rewriteAddress(write(table.state));
  }
  await table.read().catch((error) => table.showProblem(error));
}

/** @param {Scope} scope @returns {TableState} the table that the address need not describe */
function makeUsual(scope) {
  return { ...makeState(), sort: scope.query ? "-created" : "-id", group: ["set"], pinned: ["id"] };
}

/**
 * Return the address of a table.
 * @param {{path: string, scope: Scope, project: string}} place
 * @param {URLSearchParams} query
 * @param {boolean} hasDefault an address that says nothing means the view with which the project begins
 */
function writeAddress({ path, scope, project }, query, hasDefault) {
  const parts = new URLSearchParams(scope.query ? { of: scope.query } : {});
  for (const [name, value] of query) parts.append(name, value);
  if (!query.size && hasDefault) parts.set("filter", "");
  if (project) parts.set("project", project);
  return `${path}${parts.size ? `?${parts}` : ""}`;
}

/** @param {string} project @param {string[]} projects @param {(project: string) => void} choose */
function makePicker(project, projects, choose) {
  const names = [...new Set([...projects, ...(project ? [project] : [])])];
  const options = names.map((name) => make("option", { value: name, selected: name === project }, name));
  const select = make("select", { "aria-label": "Project", onchange: () => choose(select.value) }, make("option", { value: "" }, "all projects"), options);
  return select;
}
