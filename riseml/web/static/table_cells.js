// @ts-check
/** What the cells of a table of experiments show. */

import { stripControls, takeLastState } from "./ansi.js";
import { readClock } from "./clock.js";
import { make } from "./dom.js";
import { countNoun, formatMoment, formatNumber, formatSpan } from "./format.js";
import { linkTo, makeAge, makeDuration, makeState } from "./parts.js";
import { describeBriefly, describeStep } from "./progress.js";

/** @import { TableLine } from "../wire.js" */
/** @typedef {import("./dom.js").Child[]} Children */

/** @returns {HTMLElement} what to do on a server without experiments */
export function makeFirstSteps() {
  const step = (/** @type {string} */ command, /** @type {string} */ what) => make("li", {}, make("code", {}, command), ` ${what}`);
  return make("div", { class: "empty" },
    make("p", {}, "There is no experiment so far. In the folder of a program that trains:"),
    make("ol", {}, step("riseml init", "writes a riseml.yml for it"), step("riseml validate", "checks the file"), step("riseml train", "runs it, and it appears here")),
  );
}

/**
 * @param {TableLine} line
 * @param {string} name of the column
 * @param {number} place of the column
 * @param {string[]} group columns by which the table is grouped
 * @returns {Children}
 */
export function makeCell(line, name, place, group) {
  const value = line.cells[place] ?? null;
  const isMixed = line.mixed.includes(place);
  if (name === "id") return line.group ? [makeFold(line), ...nameGroup(line, group)] : [make("a", { href: linkTo(line.id) }, line.id)];
  if (name === "state" && line.state && (isSet(line, group) || !isMixed)) return listState(line, value);
  if (name === "progress") return value === null ? listProgress(line) : [showValue(name, value)];
  if (name === "latest") return value === null ? showLatest(line) : [showValue(name, value)];
  if (value === null || (line.group && name === "rank")) return [];
  if ((name === "set" && !isMixed) || name === "parent") return [make("a", { href: linkTo(String(value)) }, value)];
  if (name === "tags" && !isMixed) return String(value).split(",").map((tag) => make("span", { class: "tag" }, tag));
  if (name === "marks") return [String(value).replace("starred", "★").replaceAll(",", " ")];
  if (name === "created" && !isMixed) return [makeAge(String(value))];
  if (name === "time" && !isMixed && line.state === "RUNNING" && typeof value === "number") return [makeDuration(new Date(readClock() - 1000 * value).toISOString(), null)];
  const text = showValue(name, value);
  return isMixed && typeof value === "number" ? [make("span", { class: "soft", title: "mean" }, "⌀ "), text] : [isMixed ? make("span", { class: "soft" }, text) : text];
}

/** @param {TableLine} line @param {string | number | null} value of the cell @returns {Children} */
function listState(line, value) {
  const far = line.progress && make("span", { class: "soft", title: describeBriefly(line.progress) }, ` ${Math.floor(100 * line.progress.fraction)} %`);
  return [makeState(line.state ?? ""), value === "STOPPED_EARLY" && make("span", { class: "soft" }, " early"), far];
}

/** @param {TableLine} line @returns {Children} how far one that runs is, or how many of a group have ended */
function listProgress(line) {
  if (line.group) return line.ended < line.count ? [`${formatNumber(line.ended)} of ${formatNumber(line.count)} ended`] : [];
  return line.progress ? [describeStep(line.progress)] : [];
}

/** @param {TableLine} line @returns {Children} how far it is, and the last line of its log or what its search does */
function showLatest(line) {
  const last = stripControls(takeLastState(line.latest)).trim();
  const text = [...listProgress(line), last].filter(Boolean).join(" · ");
  return text ? [make("span", { class: "soft", title: text }, text)] : [];
}

/** @param {string} name @param {string | number} value @returns {string | number} */
function showValue(name, value) {
  if (name === "time" && typeof value === "number") return formatSpan(value);
  if ((name === "started" || name === "ended") && typeof value === "string" && value.includes("T")) return formatMoment(value);
  return formatNumber(value);
}

/** @param {TableLine} line @param {string[]} group @returns {boolean} the line is a set */
export function isSet(line, group) {
  return Boolean(line.group) && group.join() === "set";
}

/** @param {TableLine} line of a set @returns {string} its ID */
export function nameSet(line) {
  return JSON.parse(line.group)[0] ?? "";
}

/** @param {TableLine} line @param {string[]} group @returns {Children} */
function nameGroup(line, group) {
  const [number, ...noun] = countNoun(line.count, "experiment").split(" ");
  const count = make("span", { class: "soft" }, ` ${number}`, make("span", { class: "noun" }, ` ${noun.join(" ")}`));
  if (isSet(line, group)) return [make("a", { href: linkTo(nameSet(line)) }, nameSet(line)), count];
  return [nameValues(line), count];
}

/** @param {TableLine} line @returns {string} the values that its experiments have alike */
function nameValues(line) {
  /** @type {(string | null)[]} */
  const values = JSON.parse(line.group);
  return values.map((value) => value ?? "none").join(", ");
}

/** @param {TableLine} line @returns {HTMLElement} the button that unfolds a group */
export function makeFold(line) {
  const label = `${line.open ? "Fold" : "Unfold"} ${nameValues(line)}`;
  return make("button", { type: "button", class: "fold", "aria-expanded": String(line.open), "aria-label": label }, line.open ? "▾" : "▸");
}
