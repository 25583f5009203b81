// @ts-check
/** How far an experiment is: a bar, and its percentage in the title of the tab. */

import { make } from "./dom.js";
import { formatNumber, formatRemaining } from "./format.js";
import { makeAge } from "./parts.js";

/** @import { ExperimentView, ProgressView } from "../wire.js" */

const NOUNS = new Set(["step", "epoch", "sample", "image", "token", "example"]);

/** @param {ProgressView} progress @returns {string} `epoch 3/10, 24 %, about 12 min left` */
export function describeProgress({ done, of, unit, fraction, remaining, rounds }) {
  const count = unit === "%" ? "" : `${unit ? `${unit} ` : ""}${formatNumber(done)}/${formatNumber(of)}, `;
  const round = rounds ? ` of round ${rounds + 1}` : "";
  const left = remaining === null ? "" : `, ${formatRemaining(remaining)} left`;
  return `${count}${showPercent(fraction)}${round}${left}`;
}

/** @param {ProgressView} progress @returns {string} `24 %, about 12 min` for a table */
export function describeBriefly({ fraction, remaining }) {
  return showPercent(fraction) + (remaining === null ? "" : `, ${formatRemaining(remaining)}`);
}

/** @param {ProgressView} progress @returns {string} `epoch 3/10, about 12 min left`: without the percentage, which stands beside it */
export function describeStep({ done, of, unit, remaining, rounds }) {
  const count = unit === "%" ? "" : `${unit ? `${unit} ` : ""}${formatNumber(done)}/${formatNumber(of)}${rounds ? ` of round ${rounds + 1}` : ""}`;
  return [count, remaining === null ? "" : `${formatRemaining(remaining)} left`].filter(Boolean).join(", ");
}

/** @param {ExperimentView} view @returns {string} `3.4 steps/s, 120 samples/s` of the job that tells the progress, else of the first one that is known */
export function describeRates({ progress, jobs }) {
  const fast = (jobs ?? []).filter((job) => job.rates?.length);
  const chosen = fast.find((job) => job.name === progress?.job) ?? fast[0];
  return (chosen?.rates ?? []).map(({ unit, per_second: rate }) => {
    const noun = NOUNS.has(unit) ? `${unit}s` : unit;
    return rate >= 1 ? `${formatNumber(Number(rate.toPrecision(3)))} ${noun}/s` : `${formatNumber(Number((60 * rate).toPrecision(3)))} ${noun}/min`;
  }).join(", ");
}

/** @param {ExperimentView} view @returns {HTMLElement | null} a bar with the rate; null: nothing is known */
export function makeProgress(view) {
  const { progress } = view;
  const rates = describeRates(view);
  if (!progress) return rates ? make("p", { class: "progress" }, rates) : null;
  const text = describeProgress(progress) + (rates && `, ${rates}`);
  const bar = make("progress", { max: "1", value: String(progress.fraction), "aria-label": "Progress" });
  return make("p", { class: "progress", title: `of ${progress.job}` }, bar, " ", text);
}

/** @param {ExperimentView} view @returns {HTMLElement | null} what is probably wrong, and why it made no progress; null: nothing */
export function makeRemarks({ id, remarks, diagnosis }) {
  const rows = (remarks ?? []).map(({ job, text, since }) => make("li", {}, `${job === null ? "" : `${id}.${job}: `}${text}`, since && [", since ", makeAge(since)]));
  if (diagnosis && !remarks?.some(({ text }) => text.includes(diagnosis.sentence))) {
    rows.push(make("li", {}, `Diagnosis (${diagnosis.certainty}): ${diagnosis.sentence}, `, makeAge(diagnosis.time)));
  }
  if (!rows.length) return null;
  return make("ul", { class: "remarks", role: "status" }, rows);
}

/** @param {ExperimentView} view puts the percentage before the title of the tab */
export function showInTitle({ progress }) {
  const title = document.title.replace(/^\d+ % · /, "");
  document.title = progress ? `${showPercent(progress.fraction)} · ${title}` : title;
}

/** @param {number} fraction */
function showPercent(fraction) {
  return `${Math.floor(100 * fraction)} %`;
}
