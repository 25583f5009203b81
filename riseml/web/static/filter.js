// @ts-check
/** The filter of the experiments: `state:running lr<0.1 project:toaster`. Words without a sign match anything. */

/**
 * @typedef {object} Row what one row of the table shows
 * @property {string} id
 * @property {any} view the experiment, as the server shows it
 * @property {boolean} isMember it is one experiment of a set
 * @property {any[]} metrics
 */

const TERM = /^(-?)([^\s:<>=!]+)(:|<=|>=|!=|=|<|>)(.*)$/;

/**
 * Return a function that says whether a row matches all terms of a text.
 * @param {string} text
 * @returns {(row: Row) => boolean}
 */
export function parseFilter(text) {
  const terms = (text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []).map((term) => parseTerm(term.replaceAll('"', "")));
  return (row) => terms.every((term) => term(row));
}

/** @param {string} term @returns {(row: Row) => boolean} */
function parseTerm(term) {
  const found = TERM.exec(term);
  if (!found) {
    const isNot = term.startsWith("-") && term.length > 1;
    const sought = (isNot ? term.slice(1) : term).toLowerCase();
    return (row) => listTexts(row).some((one) => one.toLowerCase().includes(sought)) !== isNot;
  }
  const [, minus, name, sign, wanted] = found;
  return (row) => readField(row, name.toLowerCase()).some((value) => compare(value, sign, wanted)) !== (minus === "-");
}

/** @param {Row} row @returns {string[]} */
function listTexts({ view }) {
  const parameters = Object.entries(view.parameters).map(([name, value]) => `${name}=${value}`);
  return [view.id, view.project, view.state, view.user, ...parameters, ...listHosts(view)];
}

/**
 * @param {Row} row
 * @param {string} name
 * @returns {(string | number)[]}
 */
function readField({ view, metrics }, name) {
  switch (name) {
    case "id":
    case "project":
    case "state":
    case "user":
    case "type":
    case "reason":
    case "image":
    case "framework":
      return [view[name]];
    case "host":
      return listHosts(view);
    case "gpus":
      return [countGpus(view)];
  }
  const parameters = Object.entries(view.parameters).filter(([one]) => one.toLowerCase() === name);
  const found = metrics.filter((metric) => metric.name.toLowerCase() === name);
  return [...parameters.map(([, value]) => String(value)), ...found.map((metric) => metric.last)];
}

/**
 * @param {string | number} value
 * @param {string} sign
 * @param {string} wanted
 */
function compare(value, sign, wanted) {
  const [left, right] = [Number(value), Number(wanted)];
  const areNumbers = String(value) !== "" && wanted !== "" && !Number.isNaN(left) && !Number.isNaN(right);
  const [text, sought] = [String(value).toLowerCase(), wanted.toLowerCase()];
  switch (sign) {
    case ":":
      return text.includes(sought);
    case "=":
      return areNumbers ? left === right : text === sought;
    case "!=":
      return areNumbers ? left !== right : text !== sought;
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

/** @param {any} view @returns {string[]} where its jobs are; where its environment was made does not count */
export function listHosts(view) {
  const jobs = [...view.jobs, ...view.experiments.flatMap((/** @type {any} */ one) => one.jobs)];
  return [...new Set(jobs.filter((job) => job.name !== "build").map((job) => job.host).filter(Boolean))];
}

/** @param {any} view @returns {number} GPUs that its jobs have asked for */
export function countGpus(view) {
  const ofJobs = view.jobs.reduce((/** @type {number} */ sum, /** @type {any} */ job) => sum + job.gpus, 0);
  return view.experiments.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + countGpus(one), ofJobs);
}
