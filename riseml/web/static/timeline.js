// @ts-check
/** The timeline of jobs: one row for each job, one span for each state, to show how the time was spent. */

import { readClock } from "./clock.js";
import { draw, make } from "./dom.js";
import { formatMoment, formatSpan } from "./format.js";
import { hasEnded } from "./parts.js";

/** @import { EventView, ExperimentView } from "../wire.js" */

const [WIDTH, LEAST_WIDTH, MOST_WIDTH] = [1000, 640, 1300]; // pixels of the picture: where its place is not known, and its ends
const ROW = 26;
const BAR = 12;
const LEFT = 120; // where the names end
const WORDS = { CREATED: "accepted", BUILDING: "environment", PENDING: "queued", STARTING: "starting", RUNNING: "running" };

/**
 * @typedef {{state: string, start: number, end: number}} Span
 * @typedef {{name: string, spans: Span[], end: string}} Life
 */

/** @param {EventView[]} events @param {ExperimentView} view @param {number} [room] pixels @returns {HTMLElement} */
export function makeTimeline(events, view, room = WIDTH) {
  const width = Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, room));
  const lives = listLives(events, view);
  if (!lives.length) return make("p", { class: "soft" }, "Nothing has happened so far.");
  const start = Math.min(...lives.flatMap((life) => life.spans.map((span) => span.start)));
  const end = Math.max(start + 1000, ...lives.flatMap((life) => life.spans.map((span) => span.end)));
  const scale = (/** @type {number} */ at) => LEFT + ((at - start) / (end - start)) * (width - LEFT - 8);
  const height = lives.length * ROW + 24;
  const label = `${formatSpan((end - start) / 1000)} from ${formatMoment(new Date(start).toISOString())}`;
  const rows = lives.map((life, at) => drawLife(life, at, scale));
  const axis = draw("g", { class: "axis" }, [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const x = scale(start + share * (end - start));
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    return draw("text", { x, y: height - 6, "text-anchor": anchor }, formatShort((share * (end - start)) / 1000));
  }));
  const picture = draw("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Timeline: ${label}` }, rows, axis);
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Timeline of the jobs" }, picture, makeLegend());
}

/** @param {number} seconds */
function formatShort(seconds) {
  return seconds > 0 && seconds < 10 ? `${seconds.toFixed(1)} s` : formatSpan(seconds);
}

/** @param {Life} life @param {number} at @param {(moment: number) => number} scale */
function drawLife(life, at, scale) {
  const y = at * ROW + (ROW - BAR) / 2;
  const name = draw("text", { x: LEFT - 10, y: y + BAR - 2, "text-anchor": "end", class: "name" }, life.name);
  const spans = life.spans.map((span) => {
    const [from, to] = [scale(span.start), scale(span.end)];
    const words = `${WORDS[/** @type {keyof typeof WORDS} */ (span.state)]} for ${formatSpan((span.end - span.start) / 1000)}`;
    return draw("rect", { x: from, y, width: Math.max(1.5, to - from), height: BAR, rx: 2, "data-state": span.state }, draw("title", {}, `${life.name}: ${words}`));
  });
  const last = life.spans.at(-1);
  const mark = life.end && last ? draw("circle", { cx: scale(last.end), cy: y + BAR / 2, r: 4, "data-state": life.end }, draw("title", {}, `${life.name}: ${life.end.toLowerCase()}`)) : null;
  return draw("g", {}, name, spans, mark);
}

function makeLegend() {
  const parts = Object.entries(WORDS).map(([state, word]) => make("span", { class: "state", "data-state": state }, make("span", { class: "dot", "aria-hidden": "true" }), word));
  return make("p", { class: "legend soft" }, parts);
}

/** @param {EventView[]} events @param {ExperimentView} view @returns {Life[]} */
function listLives(events, view) {
  const jobs = view.jobs.map((job) => [job.id, job.name]);
  const rows = [[view.id, "experiment"], ...jobs];
  return rows.map(([id, name]) => makeLife(name, events.filter((event) => event.id === id))).filter((life) => life.spans.length);
}

/** @param {string} name @param {EventView[]} events @returns {Life} */
function makeLife(name, events) {
  /** @type {Life} */
  const life = { name, spans: [], end: "" };
  for (const [at, event] of events.entries()) {
    const start = Date.parse(event.time);
    const next = events[at + 1];
    if (hasEnded(event.state)) life.end = event.state;
    else {
      life.end = ""; // it runs again
      life.spans.push({ state: event.state, start, end: next ? Date.parse(next.time) : readClock() });
    }
  }
  return life;
}
