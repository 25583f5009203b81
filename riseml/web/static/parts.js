// @ts-check
/** Small parts that several views use. */

import { readClock } from "./clock.js";
import { fill, make } from "./dom.js";
import { formatAge, formatMoment, formatSpan } from "./format.js";

const TOLD = 8000; // milliseconds for which the page says what an action did
const ENDED = new Set(["FINISHED", "FAILED", "KILLED"]);

/** @param {string} state @returns {boolean} */
export function hasEnded(state) {
  return ENDED.has(state);
}

/** @param {string} state @returns {HTMLElement} a coloured dot and the word */
export function makeState(state) {
  return make("span", { class: "state", "data-state": state }, make("span", { class: "dot", "aria-hidden": "true" }), state.toLowerCase());
}

/** @param {string} id @param {string} [label] @returns {HTMLAnchorElement} */
export function makeLink(id, label = id) {
  return make("a", { href: linkTo(id) }, label);
}

/** @param {string} id @param {string} [part] @returns {string} */
export function linkTo(id, part = "") {
  return `/experiments/${encodeURIComponent(id)}${part ? `/${part}` : ""}`;
}

/** @param {string} time RFC 3339 @returns {HTMLElement} shows how long ago it was, and keeps the text up to date */
export function makeAge(time) {
  return make("time", { datetime: time, title: formatMoment(time), "data-ticks": "age" }, formatAge(time));
}

/** @param {{started_at: string | null, ended_at: string | null, waited?: number, waits_since?: string | null}} view @returns {HTMLElement | string} for how long its jobs ran, without waits between attempts */
export function makeRunTime(view) {
  const start = findRunStart(view);
  return makeDuration(start === null ? null : new Date(start).toISOString(), view.ended_at ?? view.waits_since ?? null);
}

/** @param {{started_at: string | null, waited?: number}} view @returns {number | null} when it started, in milliseconds; later by its waits between attempts */
export function findRunStart(view) {
  return view.started_at ? Date.parse(view.started_at) + 1000 * (view.waited ?? 0) : null;
}

/** @param {string | null} start @param {string | null} end null: not ended yet @returns {HTMLElement | string} */
export function makeDuration(start, end) {
  if (!start) return "";
  const ticks = end ? null : start;
  return make("span", { "data-ticks": ticks ? "since" : null, "data-since": ticks }, formatSince(start, end));
}

/** @param {string} start @param {string | null} end */
function formatSince(start, end) {
  return formatSpan(((end ? Date.parse(end) : readClock()) - Date.parse(start)) / 1000);
}

/** Update all ages and durations. */
export function tick() {
  for (const one of document.querySelectorAll("[data-ticks]")) {
    const since = one.getAttribute("data-since");
    const text = since ? formatSince(since, null) : formatAge(one.getAttribute("datetime") ?? "");
    if (one.textContent !== text) one.textContent = text;
  }
}

/** @param {unknown} error @returns {HTMLElement} */
export function makeProblem(error) {
  const hint = error instanceof Error && "hint" in error && typeof error.hint === "string" ? error.hint : "";
  const message = error instanceof Error ? error.message : String(error);
  return make("div", { class: "problem", role: "alert" }, make("p", {}, makeText(message)), hint && make("p", { class: "soft" }, makeText(hint)));
}

/**
 * Ask the user to confirm an action.
 * @param {{title: string, text: string, yes: string, isDangerous?: boolean, form?: HTMLElement, command?: string}} question `command` does the same on the command line
 * @param {() => Promise<void>} act
 * @returns {{show: (command: string) => void}} shows another command
 */
export function ask({ title, text, yes, isDangerous, form, command }, act) {
  const place = make("div", {}, command && makeCommand(command));
  const problem = make("div");
  const go = make("button", { type: "button", class: isDangerous ? "danger" : "primary", onclick: run }, yes);
  const stay = make("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const heading = make("h2", { id: "question" }, title);
  const dialog = make("dialog", { "aria-labelledby": "question" }, heading, make("p", {}, makeText(text)), form, place, problem, make("div", { class: "actions" }, stay, go));
  async function run() {
    go.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      fill(problem, makeProblem(error));
      go.disabled = false;
    }
  }
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return { show: (other) => fill(place, makeCommand(other)) };
}

/** Return what an action is on the command line, with a button that copies it. @param {string} command */
export function makeCommand(command) {
  const copy = make("button", { type: "button", class: "quiet", "aria-label": "Copy the command", onclick: () => copyText(command, copy) }, "Copy");
  return make("p", { class: "command soft" }, make("code", {}, command), " ", copy);
}

/** @param {string} text @param {HTMLButtonElement} button */
async function copyText(text, button) {
  await navigator.clipboard.writeText(text).then(
    () => void (button.textContent = "Copied"),
    () => void (button.textContent = "Select it and press Ctrl+C"),
  );
}

/** Return a sentence whose code, between backticks, is code. @param {string} text @returns {import("./dom.js").Child[]} */
export function makeText(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? make("code", {}, part) : part));
}

/** Say what an action did, in a line at the lower edge that goes by itself. @param {string} text */
export function tell(text) {
  document.querySelector(".told")?.remove();
  const line = make("div", { class: "told", role: "status" }, text);
  document.body.append(line);
  setTimeout(() => line.remove(), TOLD);
}

/**
 * Draw a picture anew when its place gets another width, so that its text has the size of the page.
 * @param {HTMLElement} place
 * @param {() => void} act
 */
export function onWidth(place, act) {
  let width = 0;
  const look = () => {
    if (!place.clientWidth || place.clientWidth === width) return;
    width = place.clientWidth;
    act();
  };
  new ResizeObserver(look).observe(place);
}

/** @typedef {import("./dom.js").Child | import("./dom.js").Child[]} Cell of a table */

/**
 * @param {string[]} heads
 * @param {Cell[][]} rows
 * @param {{caption: string, numbers?: number[]}} options `numbers` are the columns that are aligned to the right
 */
export function makeTable(heads, rows, { caption, numbers = [] }) {
  const kind = (/** @type {number} */ at) => (numbers.includes(at) ? "number" : null);
  const head = make("tr", {}, heads.map((text, at) => make("th", { scope: "col", class: kind(at) }, text)));
  const body = rows.map((cells) =>
    make("tr", {}, cells.map((cell, at) => make(at || cell === "" ? "td" : "th", { scope: at || cell === "" ? null : "row", class: kind(at) }, ...(Array.isArray(cell) ? cell : [cell])))),
  );
  const table = make("table", {}, make("caption", { class: "hidden" }, caption), make("thead", {}, head), make("tbody", {}, body));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `${caption}, table` }, table);
}
