// @ts-check
/** The saved views of a table: open one, save the present one under a name, make it the one that its project begins with. */

import { get, post } from "./api.js";
import { fill, make } from "./dom.js";
import { makeProblem, tell } from "./parts.js";

/** @import { SavedTableView } from "../wire.js" */

/**
 * Return what the table of a project begins with (empty: nothing is saved for it), and the projects that there are.
 * @param {string} project @param {AbortSignal} signal
 */
export async function readViews(project, signal) {
  const { views, projects } = await get("/table/views", { project }, signal);
  return { begin: views.find((view) => view.default)?.query ?? "", projects };
}

/** @param {string} project @param {string} query of a view @returns {string} its address */
export function linkToView(project, query) {
  const parts = new URLSearchParams(query);
  if (project) parts.set("project", project);
  return `/?${parts.size ? parts : "filter="}`;
}

/** @param {string} project @param {string} query of the table as it is */
export async function openViews(project, query) {
  const list = make("div");
  const problem = make("div");
  const name = make("input", { type: "text", id: "view-name", maxlength: 64, autocomplete: "off" });
  const isDefault = make("input", { type: "checkbox", id: "view-default" });
  const where = project ? `project ${project}` : "all experiments";
  const save = make("button", { type: "button", class: "primary", onclick: () => act(async () => {
    if (!name.value.trim()) throw new Error("Write a name for the view.");
    await post("/table/views", { project, name: name.value, query, default: isDefault.checked });
    tell(`Saved the view ${name.value.trim()} of ${where}.`);
    dialog.close();
  }) }, "Save this view");
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const form = make("div", { class: "form" }, make("label", { for: name.id }, make("span", {}, "Name"), name), make("label", { class: "offer", for: isDefault.id }, isDefault, ` The table of ${where} begins with it`));
  const dialog = make("dialog", { "aria-labelledby": "views-title" }, make("h2", { id: "views-title" }, `Views of ${where}`), list, make("h3", {}, "The table as it is now"), form, problem, make("div", { class: "actions" }, close, save));
  dialog.addEventListener("close", () => dialog.remove());
  const act = (/** @type {() => Promise<void>} */ task) => task().catch((error) => fill(problem, makeProblem(error)));
  const refresh = async () => {
    const { views } = await get("/table/views", { project });
    const rows = views.map((view) => makeRow(view, () => dialog.close(), () => act(async () => {
      await post("/table/views/remove", { project: view.project, name: view.name, user: view.user });
      await refresh();
    })));
    fill(list, views.length ? make("ul", { class: "views" }, rows) : make("p", { class: "soft" }, "None is saved so far."));
  };
  document.body.append(dialog);
  dialog.showModal();
  await act(refresh);
}

/** @param {SavedTableView} view @param {() => void} close @param {() => void} remove */
function makeRow(view, close, remove) {
  const address = linkToView(view.project, view.query);
  const link = make("a", { href: address, onclick: () => close() }, view.name);
  const button = make("button", { type: "button", class: "quiet", "aria-label": `Remove the view ${view.name}`, onclick: remove }, "×");
  return make("li", {}, link, make("span", { class: "soft" }, view.default ? ` ${view.user}, the default` : ` ${view.user}`), button);
}
