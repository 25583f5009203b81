// @ts-check
/** Which parameters of a search decide its metrics: what the server computed, and from how many trials. */

import { get } from "./api.js";
import { fill, make } from "./dom.js";
import { countNoun } from "./format.js";

/** @import { ImportanceTable, ImportanceView, SearchView } from "../wire.js" */

export class ImportancePanel {
  /** @param {string} id of the set @param {AbortSignal} signal */
  constructor(id, signal) {
    this.id = id;
    this.signal = signal;
    this.known = ""; // state of the trials at the last reading
    this.element = make("section", { class: "panel", "aria-label": "Parameter importance", hidden: true });
  }

  /** Read it again if further trials have a value. @param {SearchView} search */
  async update(search) {
    const known = `${search.complete} ${search.stopped} ${search.made}`;
    if (known === this.known) return;
    this.show(await get(`/experiments/${encodeURIComponent(this.id)}/importance`, {}, this.signal));
    this.known = known;
  }

  /** @param {ImportanceView} found */
  show({ tables }) {
    this.element.hidden = false;
    fill(this.element, tables.flatMap(makeParts));
  }
}

/** @param {ImportanceTable} table @returns {HTMLElement[]} */
function makeParts({ metric, parameters, trials, stopped, message, when }) {
  const early = stopped ? `, ${stopped} of them stopped early, which count with the best value that they reported` : "";
  const where = when ? " that have the parameters of this condition" : "";
  const source = `Optuna's PED-ANOVA over ${countNoun(trials, "trial")}${where}${early}. It compares the best trials with all: what decides them comes first.`;
  const title = `What decides ${metric}${when ? ` where ${when}` : ""}`;
  return [make("div", { class: "line" }, make("h2", {}, title)), ...parameters.map((one) => makeShare(one.name, one.importance)), make("p", { class: "soft" }, message || source)];
}

/** @param {string} name @param {number} share */
function makeShare(name, share) {
  const words = `${Math.round(share * 100)} %`;
  const bar = make("meter", { min: 0, max: 1, value: share, "aria-label": `${name}: ${words}` });
  return make("div", { class: "meter share" }, make("span", { class: "name" }, name), bar, make("span", { class: "number" }, words));
}
