// @ts-check
/**
 * How a user wants a table of experiments: its columns, order, groups and filter, as the address has it. Names of
 * columns are those of the command line: `lr`, `metrics.time`, `"val loss".min`.
 */

const GROUP_WIDTH = 190; // pixels of the first column, which names the groups
const NARROW_GROUP_WIDTH = 104;
const NARROW_WIDTH = 103;
const NARROW_WIDTHS = new Map([["id", 66], ["rank", 48], ["state", 106], ["progress", 170], ["latest", 240]]);
const LEAST_WIDTH = 40; // pixels
const MOST_WIDTH = 900;
const WIDTHS = new Map([["id", 92], ["marks", 82], ["created", 104], ["progress", 190], ["latest", 250], ["time", 96], ["rank", 62], ["state", 128], ["note", 260], ["name", 150], ["project", 130], ["host", 130], ["workers", 84], ["gpus", 66], ["set", 66], ["reason", 150]]);
const NAME = /(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^,])+/gs;
const PLAIN_WORD = /^[^\s<>=!'",&()\\]+$/;
const TERM = /^-?[^\s:<>=!"'-][^\s:<>=!"']*(:|<=|>=|!=|=|<|>)\S[^]*$/;
const LABEL = /^-?(star|starred|archived)$/i;
const JOINT = /^(and|or|&&|\|\|)$/i;

/**
 * @typedef {object} TableState
 * @property {string[]} columns names in their order; empty: the usual ones
 * @property {string[]} pinned names of columns that stay when the table scrolls to the side
 * @property {Record<string, number>} widths pixels, of columns that the user has sized
 * @property {string} sort as `--sort`: `-accuracy,lr`; empty: by rank
 * @property {string[]} group names of columns; empty: no groups
 * @property {string} where what the user has written into the filter
 */

/** @returns {TableState} */
export function makeState() {
  return { columns: [], pinned: [], widths: {}, sort: "", group: [], where: "" };
}

/** @param {URLSearchParams} query @param {TableState} usual @returns {TableState} */
export function readState(query, usual) {
  const widths = query.getAll("width").flatMap((text) => {
    const at = text.lastIndexOf(":");
    const pixels = Number(text.slice(at + 1));
    return at > 0 && Number.isFinite(pixels) ? [[text.slice(0, at), clampWidth(pixels)]] : [];
  });
  return {
    columns: query.has("column") ? query.getAll("column").filter(Boolean) : usual.columns,
    pinned: query.has("pinned") ? query.getAll("pinned").filter(Boolean) : usual.pinned,
    widths: query.has("width") ? Object.fromEntries(widths) : usual.widths,
    sort: query.get("sort") ?? usual.sort,
    group: query.has("group") ? query.getAll("group").filter(Boolean) : usual.group,
    where: query.get("filter") ?? usual.where,
  };
}

/** @param {TableState} state @param {TableState} usual what the address need not say @returns {URLSearchParams} */
export function writeState(state, usual) {
  const query = new URLSearchParams();
  const add = (/** @type {string} */ name, /** @type {string[]} */ values, /** @type {string[]} */ others) => {
    if (values.join("\n") === others.join("\n")) return;
    for (const value of values.length ? values : [""]) query.append(name, value);
  };
  add("filter", [state.where], [usual.where]);
  add("sort", [state.sort], [usual.sort]);
  add("group", state.group, usual.group);
  add("column", state.columns, usual.columns);
  add("pinned", state.pinned, usual.pinned);
  const list = (/** @type {Record<string, number>} */ widths) => Object.entries(widths).map(([name, pixels]) => `${name}:${pixels}`);
  add("width", list(state.widths), list(usual.widths));
  return query;
}

/** @param {number} pixels @returns {number} */
export function clampWidth(pixels) {
  return Math.round(Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, pixels)));
}

/** @param {TableState} state @param {string} name @param {boolean} [isNarrow] the table is on a phone @returns {number} pixels */
export function findWidth(state, name, isNarrow = false) {
  if (name in state.widths) return state.widths[name];
  if (name === "id" && state.group.length) return isNarrow ? NARROW_GROUP_WIDTH : GROUP_WIDTH;
  if (isNarrow) return NARROW_WIDTHS.get(name) ?? NARROW_WIDTH;
  return WIDTHS.get(name) ?? Math.min(220, Math.max(104, 40 + 8 * name.length));
}

/** @param {string} sort @returns {{name: string, descending: boolean}[]} */
export function parseSort(sort) {
  const names = (sort.match(NAME) ?? []).map((name) => name.trim()).filter((name) => name.replace(/^-/, ""));
  return names.map((name) => ({ name: name.replace(/^-/, ""), descending: name.startsWith("-") }));
}

/**
 * Return the order after a click on the head of a column: this column alone, or with Shift as a further one. The first
 * click puts the largest value first, the second one the smallest, the third one removes the column.
 * @param {string} sort @param {string} name @param {boolean} isFurther
 */
export function toggleSort(sort, name, isFurther) {
  const keys = parseSort(sort);
  const former = keys.find((key) => key.name === name);
  const next = !former ? [{ name, descending: true }] : former.descending ? [{ name, descending: false }] : [];
  const kept = isFurther ? keys.flatMap((key) => (key.name === name ? next : [key])) : next;
  const all = isFurther && !former ? [...keys, ...next] : kept;
  return all.map((key) => `${key.descending ? "-" : ""}${key.name}`).join(",");
}

/**
 * Return a filter as the server reads it: conditions as those of `riseml results --where`, and words that an experiment
 * has somewhere. Terms with spaces between them must all hold: `state:finished lr<0.1 toaster` has the conditions
 * `state:finished and lr<0.1` and the word `toaster`.
 * @param {string} text
 * @returns {{where: string, words: string[]}}
 */
export function splitFilter(text) {
  const terms = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  const conditions = terms.filter((term) => TERM.test(term) || LABEL.test(term));
  const others = terms.filter((term) => !conditions.includes(term));
  const areWords = others.every((term) => !JOINT.test(term) && !/[<>=!:,&()]/.test(term));
  if (!areWords) return { where: text.trim(), words: [] };
  return { where: conditions.join(" and "), words: others.map((term) => term.replaceAll(/["']/g, "")).filter(Boolean) };
}

/** @param {string} name of a column @param {string | number} value @returns {string} the condition that it has this value */
export function writeEqual(name, value) {
  if (name === "tags") return String(value).split(",").map((tag) => `tag:${quote(tag)}`).join(" and ");
  const text = String(value);
  return `${name}=${typeof value === "number" && Number.isFinite(value) ? text : quote(text)}`;
}

/** @param {string} text */
function quote(text) {
  return PLAIN_WORD.test(text) ? text : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** @param {string} filter @param {string} condition @returns {string} the filter with a further condition */
export function addCondition(filter, condition) {
  const { where, words } = splitFilter(filter);
  if (where.split(" and ").includes(condition)) return filter;
  const joined = [where, condition].filter(Boolean).join(" and ");
  return words.length ? [filter.trim(), ...condition.split(" and ")].join(" ") : joined;
}
