// @ts-check
/**
 * The pool: its hosts, the jobs that hold their resources, what these used over the last hours, and the queue with the
 * reason of each wait.
 */

import { get, post } from "./api.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatMemory, formatNumber } from "./format.js";
import { ask, makeAge, makeLink, makeProblem, makeTable, tell } from "./parts.js";
import { makeUsage } from "./usage.js";

/** @import { HostView, PoolUsage, PoolView as Pool, QueueView } from "../wire.js" */

const USAGE_AGE = 60_000; // milliseconds: the server's history has a value for each minute
const PAUSE = 300; // milliseconds between two readings at least

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showPool(main, page) {
  const news = page.feed.collect(page.signal);
  const view = new PoolView(main, page);
  await view.read();
  news.passTo((changes) => {
    if (changes.reset || changes.changed.length) view.readSoon();
    else view.readUsage();
  });
}

class PoolView {
  /** @param {HTMLElement} main @param {import("./app.js").Page} page */
  constructor(main, page) {
    this.page = page;
    /** @type {PoolUsage | null} */
    this.usage = null;
    this.usageAt = -Infinity;
    /** @type {Pool | null} */
    this.pool = null;
    this.facts = make("p", { class: "soft" });
    this.hours = make("select", { id: "hours", onchange: () => this.chooseHours() }, [1, 6, 24, 168].map((count) => make("option", { value: count, selected: count === 6 }, count === 168 ? "7 days" : countNoun(count, "hour"))));
    this.note = make("p", { class: "soft" });
    this.hosts = make("section", { class: "hosts", "aria-label": "Hosts" });
    this.queue = make("section", { "aria-label": "Queue" });
    const label = make("label", {}, "Use of the last ", this.hours);
    fill(main, make("div", { class: "line" }, make("h1", {}, "Pool"), label), this.facts, this.hosts, this.note, this.queue);
    this.readSoon = makeCoalesced(async () => {
      await this.read();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    });
    this.readUsage = page.feed.makeReading(() => this.refreshUsage(), page.signal);
  }

  async read() {
    const { signal, feed } = this.page;
    try {
      this.pool = await get("/pool", {}, signal);
      const { file, trouble } = this.pool;
      fill(this.facts, file ? `from ${file}` : "this machine, without a pool.yml", trouble && ` · ${trouble}`);
      this.showHosts();
      showQueue(this.queue, await get("/pool/queue", {}, signal));
      await this.refreshUsage();
    } catch (error) {
      if (signal.aborted) return;
      fill(this.facts, makeProblem(error));
      feed.onReturn(error, () => this.readSoon(), signal);
    }
  }

  /** Read the usage, unless it was read less than a minute ago. */
  async refreshUsage() {
    const now = performance.now();
    if (now - this.usageAt < USAGE_AGE) return;
    this.usageAt = now;
    const hours = this.hours.value;
    const usage = await get("/pool/usage", { hours }, this.page.signal).catch((error) => {
      this.usageAt = -Infinity;
      throw error;
    });
    if (hours !== this.hours.value) return; // it is about to come
    this.usage = usage;
    const left = this.usage.left_out;
    fill(this.note, left > 0 && `${countNoun(left, "job")} of this time ${left === 1 ? "is" : "are"} not counted: there are too many.`);
    this.showHosts();
  }

  chooseHours() {
    this.usageAt = -Infinity;
    this.readUsage();
  }

  showHosts() {
    const hosts = this.pool?.hosts ?? [];
    fill(this.hosts, hosts.map((host) => this.makeHost(host)));
  }

  /** @param {HostView} host */
  makeHost(host) {
    const words = { up: "up", silent: "silent", draining: "draining", drained: "drained" };
    const state = make("span", { class: "state", "data-state": host.state }, make("span", { class: "dot", "aria-hidden": "true" }), words[/** @type {keyof typeof words} */ (host.state)] ?? host.state);
    const act = () => (host.drained ? this.resume(host.name) : this.askDrain(host));
    const button = make("button", { type: "button", "data-host": host.name, "aria-label": `${host.drained ? "Resume" : "Drain"} ${host.name}`, onclick: act }, host.drained ? "Resume" : "Drain");
    const bars = [
      makeBar("Cores", host.cpus_used, host.cpus, formatNumber),
      makeBar("Memory", host.mem_mib_used, host.mem_mib, formatMemory),
      host.gpus > 0 && makeBar("GPUs", host.gpus_used, host.gpus, formatNumber),
    ];
    const jobs = host.jobs.length ? host.jobs.map((id) => make("li", {}, makeLink(experimentOf(id), id))) : [make("li", { class: "soft" }, "no job")];
    const { usage } = this;
    const used = usage?.hosts.find((one) => one.name === host.name);
    const head = make("div", { class: "line" }, make("h2", {}, host.name), make("div", { class: "actions" }, state, button));
    return make("article", { class: "panel host" }, head, make("p", { class: "soft" }, host.message || host.engine), bars, make("h3", {}, "Holds it"), make("ul", { class: "holders" }, jobs), usage && used && makeUsage(used, usage));
  }

  /** @param {HostView} host */
  askDrain(host) {
    const text = `${host.name} gets no new jobs until it is resumed. ${host.jobs.length ? `Its ${countNoun(host.jobs.length, "job")} run on.` : "It runs none now."}`;
    ask({ title: `Drain ${host.name}?`, text, yes: "Drain", command: `riseml pool drain ${host.name}` }, async () => {
      await post(`/pool/hosts/${encodeURIComponent(host.name)}/drain`);
      tell(`${host.name} gets no new jobs. What runs there goes on.`);
      await this.read();
    });
  }

  /** @param {string} name */
  async resume(name) {
    try {
      await post(`/pool/hosts/${encodeURIComponent(name)}/resume`);
      tell(`${name} takes jobs again: riseml pool resume ${name}`);
      await this.read();
    } catch (error) {
      fill(this.facts, makeProblem(error));
    }
  }
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

/** @param {HTMLElement} place @param {QueueView} queue */
function showQueue(place, { length, waiting }) {
  const rows = waiting.map((one) => [one.position, makeLink(one.id), one.project, makeAge(one.created_at), one.summary]);
  const rest = length - rows.length;
  const empty = make("p", { class: "soft" }, "Nothing waits.");
  fill(place, make("h2", {}, "Queue"), rows.length ? makeTable(["Place", "ID", "Project", "Submitted", "Why it waits"], rows, { caption: "Queue", numbers: [0] }) : empty, rest > 0 && make("p", { class: "soft" }, `and ${formatNumber(rest)} more`));
}
