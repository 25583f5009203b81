// @ts-check
/** The view of all experiments as a table of parameters, metrics and whatever else the user chooses. */

import { rewriteAddress } from "./address.js";
import { get } from "./api.js";
import { DataTable } from "./data_table.js";
import { fill, make } from "./dom.js";
import { openViews, readDefault } from "./saved_views.js";
import { makeSelectionActions } from "./selection.js";
import { makeState, readState, writeState } from "./table_state.js";

const USUAL = { ...makeState(), sort: "-id", group: ["set"], pinned: ["id"] };

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showTable(main, page) {
  const query = new URLSearchParams(location.search);
  const project = query.get("project") ?? "";
  query.delete("project");
  const begin = query.size ? query : new URLSearchParams(await readDefault(project, page.signal));
  const actions = make("div", { class: "actions", role: "toolbar", "aria-label": "Selected experiments" });
  const table = new DataTable({
    signal: page.signal,
    feed: page.feed,
    caption: "Experiments",
    of: [],
    project,
    state: readState(begin, USUAL),
    onState: (state) => rewriteAddress(writeAddress(project, writeState(state, USUAL))),
    onSelect: (ids) => fill(actions, makeSelectionActions(ids, () => table.clear())),
  });
  const views = make("button", { type: "button", "data-action": "views", onclick: () => openViews(project, String(writeState(table.state, USUAL))) }, "Views");
  const picker = await makePicker(project, page);
  fill(main, make("div", { class: "bar" }, make("h1", {}, "Table"), table.makeTools(), picker, views, table.count, actions), table.problem, table.notes, table.scroller);
  if (!query.size && begin.size) rewriteAddress(writeAddress(project, begin));
  await table.read().catch((error) => table.showProblem(error));
}

/** Return the address of a table. One that says nothing means the default of its project. @param {string} project @param {URLSearchParams} query */
function writeAddress(project, query) {
  const parts = new URLSearchParams(query);
  if (!parts.size) parts.set("filter", "");
  if (project) parts.set("project", project);
  return `/table?${parts}`;
}

/** @param {string} project @param {import("./app.js").Page} page */
async function makePicker(project, page) {
  const { projects } = await get("/table/views", { project }, page.signal);
  const names = [...new Set([...projects, ...(project ? [project] : [])])];
  const options = names.map((name) => make("option", { value: name, selected: name === project }, name));
  const link = make("a", { hidden: true });
  const select = make("select", { "aria-label": "Project", onchange: () => {
    link.href = select.value ? `/table?project=${encodeURIComponent(select.value)}` : "/table";
    link.click();
  } }, make("option", { value: "" }, "all projects"), options);
  return make("span", { class: "grouping" }, select, link);
}
