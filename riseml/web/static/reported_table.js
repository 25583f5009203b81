// @ts-check
/** A table that a job has reported: as a table to sort, as a matrix with shades, or as curves over its first column. */

import { stripControls } from "./ansi.js";
import { ChartPanel } from "./chart_panel.js";
import { parseTable } from "./csv.js";
import { fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { makeTable, onWidth } from "./parts.js";

/** @typedef {string | number | boolean | null} TableCell */
/** @typedef {{columns: string[], rows: TableCell[][], view: string, isCut: boolean}} ReportedTable */

const VIEWS = { table: "Table", matrix: "Matrix", curve: "Curve" };
const [MOST_ROWS, MOST_COLUMNS] = [500, 60]; // that are shown
const MOST_CURVES = 20;
const LONGEST_CELL = 500; // characters
const SHADES = 9;

/**
 * Return the table that a file has; null: it is none.
 * @param {string} text @param {string} ending of the file @param {boolean} isPart the file goes on
 * @returns {ReportedTable | null}
 */
export function readReportedTable(text, ending, isPart) {
  if (ending === "csv") {
    const { rows, isCut } = parseTable(text, MOST_ROWS + 1);
    if (isPart && !isCut) rows.pop(); // its end is missing
    if (!rows.length) return null;
    const [columns, ...body] = rows;
    return { columns, rows: body.map((row) => columns.map((_, at) => readCell(row[at] ?? ""))), view: "table", isCut: isPart || isCut };
  }
  if (ending !== "json") return null;
  try {
    const { columns, rows, view } = JSON.parse(text);
    if (!Array.isArray(columns) || !Array.isArray(rows) || !columns.length || !rows.every(Array.isArray)) return null;
    const cells = rows.map((row) => columns.map((_, at) => makeCell(row[at])));
    return { columns: columns.map(String), rows: cells, view: Object.hasOwn(VIEWS, view) ? view : "table", isCut: false };
  } catch {
    return null;
  }
}

/** @param {string} text @returns {TableCell} */
function readCell(text) {
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** @param {unknown} value @returns {TableCell} */
function makeCell(value) {
  if (value === null || value === undefined) return null;
  return typeof value === "number" || typeof value === "boolean" ? value : typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {ReportedTable} table @param {string} name @returns {HTMLElement} */
export function makeReportedTable(table, name) {
  const place = make("div");
  const offered = Object.entries(VIEWS).filter(([view]) => view === "table" || listNumbers(table).length > 0);
  const choice = make("select", { "aria-label": `View of ${name}`, onchange: () => show() }, offered.map(([view, words]) => make("option", { value: view, selected: view === table.view }, words)));
  const show = () => fill(place, choice.value === "matrix" ? makeMatrix(table, name) : choice.value === "curve" ? makeCurves(table, name) : makeSortable(table, name));
  const isCut = table.isCut || table.rows.length > MOST_ROWS || table.columns.length > MOST_COLUMNS;
  const note = isCut && make("span", { class: "soft" }, `the first ${formatNumber(Math.min(MOST_ROWS, table.rows.length))} rows; \`riseml cat\` has all`);
  show();
  return make("div", { class: "reported" }, make("div", { class: "controls" }, make("label", {}, "view ", choice), note), place);
}

/** @param {ReportedTable} table @returns {number[]} the columns after the first that have numbers alone */
function listNumbers({ columns, rows }) {
  return columns.map((_, at) => at).slice(1).filter((at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number" || row[at] === null));
}

/** @param {TableCell} value @returns {string} */
function showCell(value) {
  if (typeof value === "number") return formatNumber(value);
  const text = stripControls(value === null ? "" : String(value));
  return text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)} …` : text;
}

/** Return the rows in the order of a column: numbers first, by value; then texts. @param {TableCell[][]} rows @param {number} at @param {number} sign */
export function sortRows(rows, at, sign) {
  const compare = (/** @type {TableCell} */ one, /** @type {TableCell} */ other) => {
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    if (typeof one === "number") return -1;
    if (typeof other === "number") return 1;
    return sign * String(one ?? "").localeCompare(String(other ?? ""));
  };
  return [...rows].sort((one, other) => compare(one[at], other[at]));
}

/** @param {ReportedTable} table @param {string} name @returns {HTMLElement} a table whose heads sort it */
export function makeSortable({ columns, rows }, name) {
  const place = make("div");
  const titles = columns.slice(0, MOST_COLUMNS).map((title, at) => stripControls(title) || `Column ${at + 1}`);
  const numbers = titles.map((_, at) => at).filter((at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number" || row[at] === null));
  const draw = (/** @type {number} */ by, /** @type {number} */ sign) => {
    const sorted = by < 0 ? rows : sortRows(rows, by, sign);
    const element = makeTable(titles, sorted.slice(0, MOST_ROWS).map((row) => titles.map((_, at) => showCell(row[at]))), { caption: name, numbers });
    for (const [at, head] of [...element.querySelectorAll("thead th")].entries()) {
      const label = `${titles[at]}${at === by ? (sign < 0 ? " ↓" : " ↑") : ""}`;
      fill(head, make("button", { type: "button", class: "head", "aria-label": `Sort by ${titles[at]}`, onclick: () => draw(at, at === by ? -sign : -1) }, label));
      if (at === by) head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    }
    fill(place, element);
  };
  draw(-1, 1);
  return place;
}

/** Return a table whose numbers have a shade: the largest is the darkest. @param {ReportedTable} table @param {string} name @returns {HTMLElement} */
function makeMatrix(table, name) {
  const { columns, rows } = table;
  const at = listNumbers(table);
  const shown = rows.slice(0, MOST_ROWS);
  const values = shown.flatMap((row) => at.map((place) => Number(row[place] ?? 0)));
  const [least, largest] = [Math.min(0, ...values), Math.max(...values)];
  const titles = columns.slice(0, MOST_COLUMNS).map((title, place) => stripControls(title) || (place ? `Column ${place + 1}` : " "));
  const element = makeTable(titles, shown.map((row) => titles.map((_, place) => showCell(row[place]))), { caption: name, numbers: at });
  element.classList.add("matrix");
  for (const [line, row] of [...element.querySelectorAll("tbody tr")].entries()) {
    for (const place of at) {
      const share = largest > least ? (Number(shown[line][place] ?? 0) - least) / (largest - least) : 0;
      row.children[place]?.setAttribute("data-shade", String(Math.round(share * SHADES)));
    }
  }
  return element;
}

/** @param {ReportedTable} table @param {string} name @returns {HTMLElement} a chart with each column over the first one */
function makeCurves(table, name) {
  const { columns, rows } = table;
  const panel = new ChartPanel(name, { kind: "table", xTitle: stripControls(columns[0]) || "x", withoutTime: true });
  const points = rows.filter((row) => typeof row[0] === "number");
  if (!points.length) return make("p", { class: "soft" }, "The first column has no numbers, so that nothing can be drawn over it.");
  panel.show(listNumbers(table).slice(0, MOST_CURVES).map((at) => ({
    name: stripControls(columns[at]) || `Column ${at + 1}`,
    buckets: points.filter((row) => row[at] !== null).map((row) => makePoint(Number(row[0]), Number(row[at]))),
  })));
  onWidth(panel.element, () => panel.redraw()); // it is drawn before it has a place
  return panel.element;
}

/** @param {number} x @param {number} mean */
function makePoint(x, mean) {
  return { x, mean, min: mean, max: mean, last_step: null, first_at: "", last_at: "" };
}
