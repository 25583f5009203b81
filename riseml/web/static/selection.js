// @ts-check
/** What users do with the experiments that they have selected: compare, label, archive, kill. */

import { post } from "./api.js";
import { make } from "./dom.js";
import { countNoun } from "./format.js";
import { ask, tell } from "./parts.js";
import { guard, isForeign } from "./rights.js";
import { makeBoardLink } from "./tensorboard.js";

/** @import { AnnotationChange } from "../wire.js" */

const MOST_COMPARED = 20; // experiments that the server puts side by side
const MOST_LISTED = 40; // IDs in a command line that is shown

/**
 * @param {string[]} ids
 * @param {string} reason why the user may not change one of them; empty: they may
 * @param {() => void} clear
 * @returns {import("./dom.js").Child[]}
 */
export function makeSelectionActions(ids, reason, clear) {
  if (!ids.length) return [];
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick, kind = "") => make("button", { type: "button", class: kind || null, "data-action": label, onclick }, label);
  const compare = make("a", { class: "button", href: `/compare?${ids.map((id) => `of=${encodeURIComponent(id)}`).join("&")}` }, "Compare");
  const many = make("span", { class: "soft" }, `at most ${MOST_COMPARED} can be compared`);
  const change = (/** @type {AnnotationChange} */ body) => changeAll(ids, body);
  return [
    make("span", { class: "soft" }, `${ids.length} selected`),
    ids.length > 1 && (ids.length > MOST_COMPARED ? many : compare),
    ids.length <= MOST_COMPARED && !ids.some(isForeign) && makeBoardLink(ids),
    ...guard(
      [
        button("Tag", () => askTag(ids)),
        button("Star", () => askSimple("Star", ids, "star", () => change({ starred: true }))),
        button("Archive", () => askSimple("Archive", ids, "archive", () => change({ archived: true }))),
        button("Kill", () => askSimple("Kill", ids, "kill", () => killAll(ids)), "danger"),
      ],
      reason,
    ),
    button("Clear", clear),
  ];
}

/** @param {string[]} ids @param {AnnotationChange} body */
async function changeAll(ids, body) {
  for (const id of ids) await post(`/experiments/${encodeURIComponent(id)}/annotation`, body);
}

/** @param {string[]} ids */
async function killAll(ids) {
  for (const id of ids) await post(`/experiments/${encodeURIComponent(id)}/kill`);
}

const TEXTS = {
  Star: "A star marks them in every list.",
  Archive: "Lists leave them out once they have ended, unless the filter says archived. Nothing of them is removed.",
  Kill: "All of their jobs end now. What they have written stays.",
};

/** @param {"Star" | "Archive" | "Kill"} what @param {string[]} ids @param {string} command @param {() => Promise<void>} act */
function askSimple(what, ids, command, act) {
  ask({ title: `${what} ${countNoun(ids.length, "experiment")}?`, text: TEXTS[what], yes: what, isDangerous: what === "Kill", command: `riseml ${command} ${listIds(ids)}` }, async () => {
    await act();
    tell(`${{ Star: "Starred", Archive: "Archived", Kill: "Ended" }[what]} ${countNoun(ids.length, "experiment")}.`);
  });
}

/** @param {string[]} ids */
function askTag(ids) {
  const tags = make("input", { type: "text", id: "bulk-tags", autocomplete: "off", spellcheck: "false" });
  const form = make("div", { class: "form" }, make("label", { for: tags.id }, make("span", {}, "Tags, with spaces between them"), tags));
  ask({ title: `Tag ${countNoun(ids.length, "experiment")}`, text: "Each of them gets these tags, beside those that it has.", yes: "Tag", form }, async () => {
    const added = tags.value.split(/\s+/).filter(Boolean);
    if (!added.length) throw new Error("Write at least one tag.");
    await changeAll(ids, { add_tags: added });
    tell(`Tagged ${countNoun(ids.length, "experiment")} ${added.join(" ")}.`);
  });
}

/** @param {string[]} ids */
function listIds(ids) {
  return ids.length > MOST_LISTED ? `${ids.slice(0, MOST_LISTED).join(" ")} ...` : ids.join(" ");
}
