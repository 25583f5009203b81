// @ts-check
/** What the jobs of a host have used over the last hours: the resources that they hold as a light area, the busy part as a dark one. */

import { draw, make } from "./dom.js";
import { formatMemory, formatMoment, formatNumber } from "./format.js";

/** @import { HostUsage, PoolUsage } from "../wire.js" */

const [WIDTH, HEIGHT] = [480, 54];
const MIB = 1024 * 1024;

/** @typedef {{label: string, total: number, busy: number[], held: number[], show: (value: number) => string}} Amount */

/** @param {HostUsage} host @param {PoolUsage} usage @returns {HTMLElement} */
export function makeUsage(host, usage) {
  /** @type {Amount[]} */
  const amounts = [
    { label: "Cores", total: host.cpus ?? 0, busy: host.cpu, held: host.cpus_held, show: formatNumber },
    { label: "Memory", total: (host.mem_mib ?? 0) * MIB, busy: host.mem_used, held: [], show: (value) => formatMemory(value / MIB) },
  ];
  if (host.gpus || host.gpus_held.some(Boolean)) amounts.push({ label: "GPUs", total: host.gpus ?? 0, busy: host.gpu, held: host.gpus_held, show: formatNumber });
  const first = usage.time[0];
  const from = first === undefined ? "" : formatMoment(new Date(first * 1000).toISOString()).replace(/:\d\d$/, "");
  const title = make("h3", {}, `What its jobs used since ${from}`);
  return make("div", { class: "used" }, title, amounts.map((amount) => drawAmount(amount)));
}

/** @param {Amount} amount */
function drawAmount({ label, total, busy, held, show }) {
  const top = Math.max(total, ...busy, ...held) || 1;
  const most = Math.max(0, ...busy);
  const words = `${label}: at most ${show(most)}${total ? ` of ${show(total)}` : ""}, now ${show(busy.at(-1) ?? 0)}`;
  const step = WIDTH / Math.max(1, busy.length);
  const area = (/** @type {number[]} */ values, /** @type {string} */ kind) => draw("path", { class: kind, d: makePath(values, step, top) });
  const line = draw("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 });
  const picture = draw("svg", { class: "usage", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words }, area(held, "held"), area(busy, "busy"), line);
  return make("figure", {}, make("figcaption", { class: "soft" }, words), picture);
}

/** @param {number[]} values @param {number} step @param {number} top */
function makePath(values, step, top) {
  const parts = [`M0 ${HEIGHT}`];
  for (const [at, value] of values.entries()) {
    const y = (HEIGHT - (value / top) * (HEIGHT - 2)).toFixed(1);
    parts.push(`L${(at * step).toFixed(1)} ${y} L${((at + 1) * step).toFixed(1)} ${y}`);
  }
  return `${parts.join(" ")} L${WIDTH} ${HEIGHT} Z`;
}
