// @ts-check
/** The pool: its hosts, who holds what of them, and the queue with the reason of each wait. */

import { get } from "./api.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { formatMemory, formatNumber } from "./format.js";
import { makeAge, makeLink, makeProblem, makeTable } from "./parts.js";

const MOST_EXPLAINED = 20; // waiting experiments whose reasons are asked for
const WAITS = new Set(["PENDING", "CREATED", "BUILDING"]);

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showPool(main, page) {
  const facts = make("p", { class: "soft" });
  const hosts = make("section", { class: "hosts", "aria-label": "Hosts" });
  const queue = make("section", { "aria-label": "Queue" });
  fill(main, make("h1", {}, "Pool"), facts, hosts, queue);
  const read = makeCoalesced(async () => {
    try {
      const pool = await get("/pool", {}, page.signal);
      fill(facts, pool.file ? `from ${pool.file}` : "this machine, without a pool.yml", pool.trouble && ` · ${pool.trouble}`);
      fill(hosts, pool.hosts.map(makeHost));
      await showQueue(queue, page.signal);
    } catch (error) {
      if (!page.signal.aborted) fill(facts, makeProblem(error));
    }
  });
  await read();
  page.feed.listen(({ changed, reset }) => {
    if (reset || changed.length) read();
  }, page.signal);
}

/** @param {any} host */
function makeHost(host) {
  const words = { up: "up", silent: "silent", draining: "draining", drained: "drained" };
  const state = make("span", { class: "state", "data-state": host.state }, make("span", { class: "dot", "aria-hidden": "true" }), words[/** @type {keyof typeof words} */ (host.state)] ?? host.state);
  const bars = [
    makeBar("Cores", host.cpus_used, host.cpus, formatNumber),
    makeBar("Memory", host.mem_mib_used, host.mem_mib, formatMemory),
    host.gpus > 0 && makeBar("GPUs", host.gpus_used, host.gpus, formatNumber),
  ];
  const jobs = host.jobs.length ? host.jobs.map((/** @type {string} */ id) => make("li", {}, makeLink(experimentOf(id), id))) : [make("li", { class: "soft" }, "no job")];
  return make("article", { class: "panel host" }, make("div", { class: "line" }, make("h2", {}, host.name), state), make("p", { class: "soft" }, host.message || host.engine), bars, make("h3", {}, "Holds it"), make("ul", { class: "holders" }, jobs));
}

/** @param {string} job `144.1.worker.2` @returns {string} `144.1` */
function experimentOf(job) {
  const [number, sub] = job.split(".");
  return /^\d+$/.test(sub ?? "") ? `${number}.${sub}` : number;
}

/** @param {string} label @param {number} used @param {number} total @param {(value: number) => string} show */
function makeBar(label, used, total, show) {
  const words = `${show(used)} of ${show(total)}`;
  const bar = make("meter", { min: 0, max: total || 1, value: Math.min(used, total || 1), "aria-label": `${label}: ${words}` });
  return make("div", { class: "meter" }, make("span", {}, label), bar, make("span", { class: "number" }, words));
}

/** @param {HTMLElement} place @param {AbortSignal} signal */
async function showQueue(place, signal) {
  const { experiments } = await get("/experiments", {}, signal);
  const single = experiments.flatMap((/** @type {any} */ view) => (view.type === "set" ? view.experiments : [view]));
  const waiting = single.filter((/** @type {any} */ view) => WAITS.has(view.state));
  const explained = await Promise.all(waiting.slice(0, MOST_EXPLAINED).map((/** @type {any} */ view) => explain(view, signal)));
  const order = (/** @type {any} */ one) => one.found?.queue?.position ?? Infinity;
  const rows = explained.sort((one, other) => order(one) - order(other)).map(({ view, found }) => [
    Number.isFinite(order({ found })) ? order({ found }) : "",
    makeLink(view.id),
    view.project,
    makeAge(view.created_at),
    found ? found.summary : view.message,
  ]);
  const rest = waiting.length - rows.length;
  const empty = make("p", { class: "soft" }, "Nothing waits.");
  fill(place, make("h2", {}, "Queue"), rows.length ? makeTable(["Place", "ID", "Project", "Submitted", "Why it waits"], rows, { caption: "Queue", numbers: [0] }) : empty, rest > 0 && make("p", { class: "soft" }, `and ${rest} more`));
}

/** @param {any} view @param {AbortSignal} signal */
async function explain(view, signal) {
  const found = await get(`/experiments/${encodeURIComponent(view.id)}/explain`, {}, signal).catch(() => null);
  return { view, found };
}
