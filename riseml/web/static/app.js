// @ts-check
/** The page: one view for each address, the feed that all views share, the theme, and the keyboard. */

import { isShown, noteShown, readParts } from "./address.js";
import { findSession, forgetSession, isTeam, takeSession } from "./api.js";
import { showComparison } from "./compare.js";
import { fill, make, setText } from "./dom.js";
import { showExperiment } from "./experiment.js";
import { showExperiments } from "./experiments.js";
import { Feed } from "./feed.js";
import { makeProblem, tick } from "./parts.js";
import { showPool } from "./pool.js";
import { showReports } from "./reports.js";
import { showSessions } from "./sessions.js";
import { showSignIn } from "./sign_in.js";
import { showBoard } from "./tensorboard.js";

/**
 * @typedef {object} Page what a view gets
 * @property {AbortSignal} signal is aborted when the user leaves the view
 * @property {Feed} feed
 * @property {string[]} parts the address below `/`
 */

const THEME = "riseml-theme"; // key of the stored choice: `dark` or `light`
const KEYS = [
  ["/", "filter or search"],
  ["g e", "experiments"],
  ["g p", "pool"],
  ["g r", "reports"],
  ["j and k, or the arrows in the table", "next and previous row"],
  ["x", "select the row"],
  ["Enter", "open the row"],
  ["t", "dark or light"],
  ["?", "this help"],
];
const feed = new Feed();
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let control = new AbortController();
let hasShown = false; // a view
let isOut = false; // True: the user of a team's server has to log in first
let lastKey = "";

/** Show the view of the present address. */
function show() {
  if (isOut) return;
  control.abort();
  control = new AbortController();
  const found = readParts();
  const parts = found ?? [];
  const page = { signal: control.signal, feed, parts };
  const title = parts.length > 1 ? parts[1] : (parts[0] ?? "experiments").replace("table", "experiments");
  document.title = `${title} · riseml`;
  for (const link of document.querySelectorAll("[data-nav]")) {
    const isHere = link.getAttribute("data-nav") === (parts[0] ?? "experiments").replace("table", "experiments");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = found ? chooseView(parts) : showNothing;
  main.className = view.name;
  fill(main);
  const signal = control.signal;
  Promise.resolve(view(main, page)).catch((error) => {
    if (signal.aborted) return;
    fill(main, makeProblem(error));
    feed.onReturn(error, show, signal);
  });
}

/** @param {string[]} parts @returns {(main: HTMLElement, page: Page) => Promise<void> | void} */
function chooseView(parts) {
  if (!parts.length || (parts[0] === "table" && parts.length === 1)) return showExperiments;
  if (parts[0] === "experiments" && parts.length >= 2) return showExperiment;
  if (parts[0] === "pool") return showPool;
  if (parts[0] === "reports" && parts.length <= 2) return showReports;
  if (parts[0] === "compare") return showComparison;
  if (parts[0] === "tensorboard") return showBoard;
  if (parts[0] === "sessions" && isTeam) return showSessions;
  return showNothing;
}

/** @param {HTMLElement} place */
function showNothing(place) {
  fill(place, make("h1", {}, "There is no such page"), make("p", {}, make("a", { href: "/" }, "Experiments")));
}

/**
 * Go to an address of the page without loading it again.
 * @param {string} address
 * @param {{begins: boolean} | null} [state] `begins`: the user has pressed a button, so the view may start something
 */
export function go(address, state = null) {
  history.pushState(state, "", address);
  arrive();
}

/** Show the new address, unless the view itself has changed only the query. */
function arrive() {
  if (isShown()) return;
  noteShown();
  show();
  const isFirst = !hasShown;
  hasShown = true;
  if (isFirst) return;
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

/** @param {MouseEvent} event */
function followLink(event) {
  const link = /** @type {Element} */ (event.target).closest?.("a");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || link.target || link.hash || link.download) return;
  event.preventDefault();
  go(url.pathname + url.search, link.hasAttribute("data-begins") ? { begins: true } : null);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {Element} */ (event.target);
  if (event.key === "Escape" && target.matches("input")) /** @type {HTMLElement} */ (target).blur();
  if (target.matches("input, select, textarea, dialog *") || event.ctrlKey || event.metaKey || event.altKey) return;
  const pair = lastKey + event.key;
  lastKey = event.key === "g" ? "g" : "";
  if (pair === "ge") go("/");
  else if (pair === "gp") go("/pool");
  else if (pair === "gr") go("/reports");
  else if (event.key === "t") toggleTheme();
  else if (event.key === "?") showKeys();
  else if (event.key === "/") {
    const input = main.querySelector('input[type="search"]');
    if (!(input instanceof HTMLInputElement)) return;
    event.preventDefault();
    input.focus();
    input.select();
  }
}

function showKeys() {
  const rows = KEYS.map(([key, what]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)));
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = make("dialog", { "aria-labelledby": "keys-title" }, make("h2", { id: "keys-title" }, "Keyboard"), make("dl", { class: "keys" }, rows), close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function toggleTheme() {
  const isDark = readTheme() === "dark";
  localStorage.setItem(THEME, isDark ? "light" : "dark");
  applyTheme();
}

/** @returns {string} */
function readTheme() {
  return localStorage.getItem(THEME) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function applyTheme() {
  const theme = readTheme();
  document.documentElement.setAttribute("data-theme", theme);
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  setText(button, theme === "dark" ? "Light" : "Dark");
}

/** @param {import("./feed.js").Connection} connection */
function showConnection(connection) {
  const place = /** @type {HTMLElement} */ (document.getElementById("connection"));
  place.setAttribute("data-connection", connection);
  const words = {
    live: "live",
    lost: "the server does not answer; this page goes on when it does",
    out: "this browser is not let in: open the address that `riseml web` prints",
  };
  setText(place, isTeam && connection === "out" ? "" : words[connection]);
  if (isTeam && connection === "out") askToLogIn("Your session has ended.");
  if (isOut && connection === "live") location.reload(); // the user has logged in on another page of this browser
}

/** Show the view to log in instead of any other. @param {string} reason */
function askToLogIn(reason) {
  if (isOut) return;
  isOut = true;
  control.abort();
  forgetSession();
  document.title = "log in · riseml";
  main.className = "showSignIn";
  showSignIn(main, reason, () => location.reload());
}

/** Show who is logged in, with the way to their sessions. */
function showAccount() {
  const nav = document.querySelector("nav");
  nav?.append(make("a", { href: "/sessions", "data-nav": "sessions" }, "Account"));
}

applyTheme();
await takeSession();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
document.getElementById("theme")?.addEventListener("click", toggleTheme);
document.getElementById("keys")?.addEventListener("click", showKeys);
document.addEventListener("click", followLink);
document.addEventListener("keydown", onKey);
window.addEventListener("popstate", arrive);
setInterval(tick, 1000);
feed.onConnection = showConnection;
if (isTeam && !findSession()) {
  askToLogIn("");
} else {
  if (isTeam) showAccount();
  feed.run();
  feed.ready.then(arrive);
}
