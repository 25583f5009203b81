// @ts-check
/** What users say about an experiment: its name, tags, note and star, and the form that changes them. */

import { post } from "./api.js";
import { make } from "./dom.js";
import { ask } from "./parts.js";
import { explainRights, guard } from "./rights.js";

/** @import { AnnotationChange, ExperimentView } from "../wire.js" */

/** @param {ExperimentView} view @returns {HTMLElement | null} its star, name and tags; null: nothing is said */
export function makeLabels(view) {
  const star = view.starred && make("span", { class: "star", role: "img", "aria-label": "starred" }, "★");
  const name = view.name && make("span", { class: "name" }, view.name);
  const tags = (view.tags ?? []).map((tag) => make("span", { class: "tag" }, tag));
  const archived = view.archived && make("span", { class: "tag" }, "archived");
  if (!star && !name && !tags.length && !archived) return null;
  return make("span", { class: "labels" }, star, name, tags, archived);
}

/** @param {ExperimentView} view @returns {HTMLElement | null} its note, as it was written */
export function makeNote(view) {
  return view.note ? make("p", { class: "note" }, view.note) : null;
}

/** @param {ExperimentView} view @returns {HTMLElement[]} buttons that change what is said */
export function makeLabelActions(view) {
  const star = make("button", { type: "button", "data-action": "star", "aria-pressed": String(Boolean(view.starred)), "aria-label": "Star", onclick: () => changeNow(view, { starred: !view.starred }) }, view.starred ? "★" : "☆");
  const edit = make("button", { type: "button", "data-action": "describe", onclick: () => askLabels(view) }, "Describe");
  const archive = make("button", { type: "button", "data-action": "archive", onclick: () => askArchive(view) }, view.archived ? "Unarchive" : "Archive");
  return guard([star, edit, archive], explainRights(view));
}

/** @param {ExperimentView} view @param {AnnotationChange} body */
async function change(view, body) {
  await post(`/experiments/${encodeURIComponent(view.id)}/annotation`, body);
}

/** Change what is said, or say why not. @param {ExperimentView} view @param {AnnotationChange} body */
function changeNow(view, body) {
  change(view, body).catch((error) => {
    ask({ title: `${view.id} is as it was`, text: error instanceof Error ? error.message : String(error), yes: "Try again" }, () => change(view, body));
  });
}

/** @param {ExperimentView} view */
function askArchive(view) {
  if (view.archived) {
    changeNow(view, { archived: false });
    return;
  }
  const text = "Lists leave it out once it has ended, unless the filter says archived. Nothing of it is removed.";
  ask({ title: `Archive ${view.id}?`, text, yes: "Archive" }, () => change(view, { archived: true }));
}

/** @param {ExperimentView} view */
function askLabels(view) {
  const name = make("input", { type: "text", id: "label-name", value: view.name ?? "", maxlength: 64, autocomplete: "off" });
  const tags = make("input", { type: "text", id: "label-tags", value: (view.tags ?? []).join(" "), autocomplete: "off", spellcheck: "false" });
  const note = make("textarea", { id: "label-note", rows: 6 }, view.note ?? "");
  const form = make("div", { class: "form" }, makeField("Name", name), makeField("Tags, with spaces between them", tags), makeField("Note", note));
  ask({ title: `Describe ${view.id}`, text: "The name and each tag stand for its ID on the command line.", yes: "Save", form }, () =>
    change(view, findChange(view, name.value, tags.value, note.value)),
  );
}

/** @param {string} label @param {HTMLElement} input */
function makeField(label, input) {
  return make("label", { for: input.id }, make("span", {}, label), input);
}

/**
 * Return what a user has changed in the form: what another user has said meanwhile stays.
 * @param {ExperimentView} view
 * @param {string} name
 * @param {string} tags
 * @param {string} note
 * @returns {AnnotationChange}
 */
export function findChange(view, name, tags, note) {
  const written = [...new Set(tags.split(/\s+/).filter(Boolean))];
  const former = view.tags ?? [];
  return {
    ...(name.trim() === (view.name ?? "") ? {} : { name: name.trim() }),
    ...(note === (view.note ?? "").replaceAll("\r\n", "\n") ? {} : { note }),
    add_tags: written.filter((tag) => !former.includes(tag)),
    remove_tags: former.filter((tag) => !written.includes(tag)),
  };
}
