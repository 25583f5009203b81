// @ts-check
/** The points of a set over their seeds: mean, standard deviation, number of values and interval of each. */

import { get } from "./api.js";
import { fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { makeLink, makeTable } from "./parts.js";

/** @import { GroupList, GroupView, ResultList } from "../wire.js" */

const SEED = "seed"; // the parameter in which the runs of one point differ
const FEW_POINTS = 100;

export class GroupPanel {
  /** @param {string} id of the set @param {AbortSignal} signal of the page */
  constructor(id, signal) {
    this.id = id;
    this.signal = signal;
    this.element = make("section", { "aria-label": "Over seeds", hidden: true });
  }

  /** Read the points again, if runs differ in their seeds. @param {ResultList} found @param {string} metric */
  async update(found, metric) {
    this.element.hidden = !found.parameters.includes(SEED);
    if (this.element.hidden) return;
    this.show(await get("/results/groups", { of: this.id, column: `metrics.${metric}` }, this.signal), metric);
  }

  /** @param {GroupList} found @param {string} metric */
  show(found, metric) {
    const heads = ["Rank", "Runs", ...found.parameters, "n", `Mean ${metric}`, "SD", "95% interval", "Left out"];
    const numbers = heads.map((_, at) => at).filter((at) => at === 0 || (at > 1 + found.parameters.length && at < heads.length - 1));
    const rows = found.groups.slice(0, FEW_POINTS).map((group) => listCells(group, found.parameters));
    const lucky = found.best_run;
    const luck = lucky ? [" The luckiest single run is ", makeLink(lucky.id), ` with ${formatNumber(lucky.value)}.`] : [];
    const more = found.groups.length > rows.length ? ` The first ${FEW_POINTS} of ${formatNumber(found.groups.length)} points.` : "";
    const note = make("p", { class: "soft" }, "Ranks are those of the means. SD is with n − 1; intervals of the mean are by bootstrap.", ...luck, more);
    fill(this.element, make("h2", {}, "Over seeds"), makeTable(heads, rows, { caption: "Over seeds", numbers }), note);
  }
}

/** @param {GroupView} group @param {string[]} parameters @returns {import("./parts.js").Cell[]} */
function listCells(group, parameters) {
  const interval = group.low === null ? "" : `${formatNumber(group.low)} to ${formatNumber(group.high)}`;
  const left = [
    group.failed ? `${group.failed} without a value` : "",
    group.unfinished ? `${group.unfinished} not finished` : "",
    group.stopped ? "stopped early" : "",
  ];
  const runs = group.ids.length > 1 ? [makeLink(group.ids[0] ?? ""), ` and ${group.ids.length - 1} more`] : makeLink(group.ids[0] ?? "");
  return [
    group.rank ?? "",
    runs,
    ...parameters.map((name) => group.parameters[name] ?? ""),
    group.n,
    group.mean === null ? "" : formatNumber(group.mean),
    group.deviation === null ? "" : formatNumber(group.deviation),
    interval,
    left.filter(Boolean).join(", "),
  ];
}
