// @ts-check
/**
 * The filter of the experiments: `state:running lr<0.1 project:toaster tag:baseline star`. Words without a sign match
 * anything, but `star` and `archived`, which are what users say.
 */

import { areEqualNumbers, readNumber } from "./numbers.js";

/** @import { ExperimentView, MetricView } from "../wire.js" */

/**
 * @typedef {object} Row what one row of the table shows
 * @property {string} id
 * @property {ExperimentView} view the experiment, as the server shows it
 * @property {boolean} isMember it is one experiment of a set
 * @property {MetricView[]} metrics read only for visible rows
 * @property {Map<string, Map<string, number | null>>} lasts last values by the name of the metric in lower case and by ID
 */

const FIELDS = new Set(["id", "project", "state", "user", "type", "reason", "image", "framework", "host", "gpus", "name", "tag"]);
const MARKS = new Map([
  ["star", "starred"],
  ["starred", "starred"],
  ["archived", "archived"],
]);
const TERM = /^(-?)([^\s:<>=!]+)(:|<=|>=|!=|=|<|>)(.*)$/;

/**
 * Return a function that says whether a row matches all terms of a text.
 * @param {string} text
 * @returns {(row: Row) => boolean}
 */
export function parseFilter(text) {
  const terms = splitTerms(text).map(parseTerm);
  return (row) => terms.every((term) => term(row));
}

/** @param {string} text @returns {boolean} it asks for archived experiments, which the table leaves out otherwise */
export function showsArchived(text) {
  return splitTerms(text).some((term) => term.toLowerCase() === "archived");
}

/**
 * Return what is wrong with a filter that matches nothing: a name that no experiment has, and the nearest that there is.
 * @param {string} text
 * @param {Iterable<ExperimentView>} views all experiments
 * @param {string[]} metrics names of all metrics
 */
export function explainNothing(text, views, metrics) {
  const known = new Set([...FIELDS, ...metrics.map((name) => name.toLowerCase())]);
  for (const view of views) {
    for (const one of [view, ...view.experiments]) for (const name of Object.keys(one.parameters)) known.add(name.toLowerCase());
  }
  const unknown = listNames(text).find((name) => !known.has(name.replace(/^-/, "")));
  if (unknown === undefined) return "";
  const near = [...known].map((name) => ({ name, distance: measureDistance(name, unknown) })).sort((one, other) => one.distance - other.distance)[0];
  const hint = near.distance <= Math.max(1, unknown.length / 3) ? `did you mean ${near.name}?` : "a word without a sign is sought everywhere.";
  return `No experiment has a parameter, metric or property ${unknown}: ${hint}`;
}

/** @param {string} one @param {string} other @returns {number} how many letters must be changed, added or removed */
function measureDistance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (let place = 1; place < row.length; place += 1) {
      next.push(Math.min(row[place] + 1, next[place - 1] + 1, row[place - 1] + (letter === other[place - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[row.length - 1];
}

/** @param {string} text @returns {string[]} names in it that may be those of metrics, in lower case */
export function listNames(text) {
  const found = splitTerms(text).map((term) => TERM.exec(term)?.[2].toLowerCase() ?? "");
  return found.filter((name) => name && !FIELDS.has(name));
}

/** @param {string} text @returns {string[]} */
function splitTerms(text) {
  return (text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []).map((term) => term.replaceAll('"', ""));
}

/** @param {string} term @returns {(row: Row) => boolean} */
function parseTerm(term) {
  const found = TERM.exec(term);
  if (!found) {
    const isNot = term.startsWith("-") && term.length > 1;
    const sought = (isNot ? term.slice(1) : term).toLowerCase();
    const mark = MARKS.get(sought);
    if (mark) return ({ view }) => Boolean(view[/** @type {"starred" | "archived"} */ (mark)]) !== isNot;
    return (row) => listTexts(row).some((one) => one.toLowerCase().includes(sought)) !== isNot;
  }
  const [, minus, name, written, wanted] = found;
  const sign = name.toLowerCase() === "tag" && written === ":" ? "=" : written; // a tag is a whole word
  return (row) => readField(row, name.toLowerCase()).some((value) => compare(value, sign, wanted)) !== (minus === "-");
}

/** @param {Row} row @returns {string[]} */
function listTexts({ view }) {
  const parameters = Object.entries(view.parameters).map(([name, value]) => `${name}=${value}`);
  return [view.id, view.project, view.state, view.user, view.name ?? "", ...(view.tags ?? []), ...parameters, ...listHosts(view)];
}

/**
 * @param {Row} row
 * @param {string} name
 * @returns {(string | number)[]}
 */
function readField({ view, metrics, lasts }, name) {
  switch (name) {
    case "state":
      return view.reason === "STOPPED_EARLY" ? [view.state, view.reason] : [view.state];
    case "id":
    case "project":
    case "user":
    case "type":
    case "reason":
    case "image":
    case "framework":
      return [view[name]];
    case "name":
      return view.name ? [view.name] : [];
    case "tag":
      return view.tags ?? [];
    case "host":
      return listHosts(view);
    case "gpus":
      return [countGpus(view)];
  }
  const parameters = Object.entries(view.parameters).filter(([one]) => one.toLowerCase() === name);
  const found = metrics.filter((metric) => metric.name.toLowerCase() === name).map((metric) => metric.last);
  const last = lasts.get(name)?.get(view.id);
  const values = found.length || last === undefined || last === null ? found : [last];
  return [...parameters.map(([, value]) => String(value)), ...values];
}

/**
 * @param {string | number} value
 * @param {string} sign
 * @param {string} wanted
 */
function compare(value, sign, wanted) {
  const left = typeof value === "number" ? value : readNumber(value);
  const right = readNumber(wanted);
  const areNumbers = !Number.isNaN(left) && !Number.isNaN(right);
  const [text, sought] = [String(value).toLowerCase(), wanted.toLowerCase()];
  const isEqual = text === sought || (typeof value === "number" ? left === right : areEqualNumbers(value, wanted));
  switch (sign) {
    case ":":
      return text.includes(sought);
    case "=":
      return isEqual;
    case "!=":
      return !isEqual;
    case "<":
      return areNumbers && left < right;
    case ">":
      return areNumbers && left > right;
    case "<=":
      return areNumbers && left <= right;
    default:
      return areNumbers && left >= right;
  }
}

/** @param {ExperimentView} view @returns {string[]} hosts of its jobs, without the host that made its environment */
export function listHosts(view) {
  const jobs = [...view.jobs, ...view.experiments.flatMap((one) => one.jobs)];
  return [...new Set(jobs.filter((job) => job.name !== "build").flatMap((job) => job.host ?? []))];
}

/** @param {ExperimentView} view @returns {number} GPUs that its jobs have asked for */
export function countGpus(view) {
  const ofJobs = view.jobs.reduce((sum, job) => sum + job.gpus, 0);
  return view.experiments.reduce((sum, one) => sum + countGpus(one), ofJobs);
}
