// @ts-check
/**
 * A table of experiments whose columns, order and groups the user chooses. The server finds, sorts and groups; the page
 * holds the lines that are in sight and some around them.
 */

import { get, getResponse } from "./api.js";
import { chooseColumns } from "./column_panel.js";
import { fill, make, setText } from "./dom.js";
import { makeFirstSteps } from "./experiments.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatMoment, formatNumber, formatSpan } from "./format.js";
import { ask, linkTo, makeProblem, makeState } from "./parts.js";
import { addCondition, arrange, chooseUsual, clampWidth, findWidth, parseSort, toggleSort, writeConditions, writeEqual } from "./table_state.js";
import { VirtualRows } from "./virtual.js";

/** @import { TableColumn, TableLine, TableView } from "../wire.js" */
/** @import { TableState } from "./table_state.js" */

const ROW_HEIGHT = 34; // pixels; views.css has the same
const CHUNK = 300; // lines of one request
const MOST_CHUNKS = 12; // kept
const MOST_MARKED = 10_000; // experiments that are selected at once
const PAUSE = 1000; // milliseconds between two readings because of changes
const CHECK_WIDTH = 30; // pixels
const STEP = 16; // pixels by which a key sizes a column

/**
 * @typedef {object} TableOptions
 * @property {AbortSignal} signal
 * @property {import("./feed.js").Feed} feed
 * @property {string} caption
 * @property {string[]} of IDs; empty: all experiments
 * @property {string} [project] empty: all projects
 * @property {TableState} state
 * @property {(state: TableState) => void} onState is called when the user has changed it
 * @property {(ids: string[]) => void} onSelect
 */

export class DataTable {
  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    this.state = options.state;
    /** @type {TableColumn[]} */
    this.available = [];
    /** @type {string[]} */
    this.columns = [];
    /** @type {(string | null)[]} classes of the cells of each column */
    this.classes = [];
    /** @type {(number | null)[]} pixels left of each column that is pinned; null: it is not */
    this.lefts = [];
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Set<string>} */
    this.selected = new Set();
    this.last = ""; // the ID that was selected last
    /** @type {Map<number, TableLine[]>} lines by the number of their chunk */
    this.chunks = new Map();
    /** @type {Set<number>} chunks that are asked for */
    this.asked = new Set();
    this.reading = 0; // number of the newest order, filter or columns
    this.lines = 0;
    /** @type {TableView | null} */
    this.view = null;
    this.heads = make("tr", { class: "row" });
    this.sizes = make("colgroup");
    this.body = make("tbody");
    this.table = make("table", { class: "rows chosen" }, make("caption", { class: "hidden" }, options.caption), this.sizes, make("thead", {}, this.heads), this.body);
    this.scroller = make("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `${options.caption}, table` }, this.table);
    this.count = make("p", { class: "soft count", role: "status" });
    this.problem = make("div");
    this.notes = make("div", { class: "soft notes" });
    this.input = make("input", { type: "search", class: "conditions", value: this.state.where, "aria-label": "Filter the table", placeholder: "state=finished  lr<0.1  tag:baseline", autocomplete: "off", spellcheck: "false", oninput: () => this.setFilter(this.input.value) });
    this.grouping = make("div", { class: "grouping" });
    const space = () => make("tr", { class: "space", "aria-hidden": "true" });
    const draw = (/** @type {number} */ first, /** @type {number} */ last) => this.draw(first, last);
    const shown = (/** @type {number} */ first, /** @type {number} */ last) => this.want(first, last);
    this.virtual = new VirtualRows({ scroller: this.scroller, rows: this.body, height: ROW_HEIGHT, draw, shown, space }, options.signal);
    this.readSoon = makeCoalesced(async () => {
      await this.read().catch((error) => this.showProblem(error));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    });
    this.body.addEventListener("click", (event) => this.onClick(event), { signal: options.signal });
    this.scroller.addEventListener("keydown", (event) => this.onKey(event), { signal: options.signal });
    options.feed.listen(() => this.readSoon(), options.signal);
    matchMedia("(max-width: 700px)").addEventListener("change", () => this.redraw(), { signal: options.signal });
  }

  /** @returns {HTMLElement[]} what is above the table: filter, groups, columns, CSV */
  makeTools() {
    const columns = make("button", { type: "button", "data-action": "columns", onclick: () => this.chooseColumns() }, "Columns");
    const csv = make("button", { type: "button", "data-action": "csv", onclick: () => this.saveCsv(csv) }, "CSV");
    return [make("label", { class: "filter" }, this.input), this.grouping, columns, csv];
  }

  /** Ask for another order, filter, groups or columns. @returns {Promise<void>} */
  async read() {
    const reading = (this.reading += 1);
    const first = Math.floor(this.virtual.first / CHUNK);
    const isKnown = this.available.length > 0;
    if (!isKnown) await this.readAvailable();
    this.columns = arrange(this.state, this.state.columns.length ? this.state.columns : this.usual);
    const view = await get("/table", { ...this.query, offset: first * CHUNK, limit: CHUNK, available: true }, this.options.signal);
    if (reading !== this.reading) return;
    this.available = view.available;
    const columns = arrange(this.state, this.state.columns.length ? this.state.columns : this.usual);
    if (columns.join("\n") !== view.columns.join("\n")) return this.read(); // a metric was reported for the first time
    this.view = view;
    this.chunks = new Map([[first, view.rows]]);
    this.asked.clear();
    this.lines = view.lines;
    this.showHeads();
    this.showAround();
    fill(this.problem);
    this.input.removeAttribute("aria-invalid");
    this.virtual.refresh(view.lines);
  }

  async readAvailable() {
    const { of, project } = this.options;
    const view = await get("/table", { of, project: project || null, limit: 0, available: true }, this.options.signal);
    this.available = view.available;
    this.view = view;
  }

  /** The columns of a table whose columns nobody has chosen. */
  get usual() {
    return chooseUsual(this.available, (this.view?.objectives ?? []).map(({ metric }) => metric), this.options.of.length > 0);
  }

  get query() {
    const { of, project } = this.options;
    const { sort, group, where } = this.state;
    return { of, project: project || null, where: writeConditions(where) || null, sort, group, column: this.columns, open: [...this.open] };
  }

  /** @param {unknown} error */
  showProblem(error) {
    if (this.options.signal.aborted) return;
    fill(this.problem, makeProblem(error));
    this.input.setAttribute("aria-invalid", "true");
    this.options.feed.onReturn(error, () => this.readSoon(), this.options.signal);
  }

  /** Change how the table is, and read it again. @param {Partial<TableState>} change */
  change(change) {
    this.state = { ...this.state, ...change };
    if (change.where !== undefined && this.input.value !== change.where) this.input.value = change.where;
    if (change.group) this.open.clear();
    if (change.where !== undefined || change.group || change.sort !== undefined) this.scroller.scrollTop = 0;
    this.options.onState(this.state);
    return this.read().catch((error) => this.showProblem(error));
  }

  /** @param {string} where */
  setFilter(where) {
    this.change({ where });
  }

  /** Show how many lines there are, the notes, and the groups. */
  showAround() {
    const view = /** @type {TableView} */ (this.view);
    const all = countNoun(view.total, "experiment");
    const groups = this.state.group.length ? `, ${countNoun(view.lines, "line")}` : "";
    const hidden = view.archived ? `, ${formatNumber(view.archived)} archived not shown` : "";
    setText(this.count, `${view.matched === view.total ? all : `${formatNumber(view.matched)} of ${all}`}${groups}${hidden}`);
    fill(this.notes, view.notes.map((note) => make("p", {}, note)), view.matched ? null : this.makeEmpty(view));
    this.table.setAttribute("aria-rowcount", String(view.lines + 1));
    this.showGrouping();
  }

  /** @param {TableView} view */
  makeEmpty(view) {
    if (!view.total) return makeFirstSteps();
    return make("p", { class: "empty" }, "No experiment meets this filter. ", make("button", { type: "button", onclick: () => this.change({ where: "" }) }, "Show all"));
  }

  showGrouping() {
    const names = ["set", ...this.available.filter(({ kind, part, differs }) => differs && (kind === "parameters" || (kind === "own" && !part))).map(({ name }) => name)];
    const usable = [...new Set(names)].filter((name) => !["id", "rank", "time", "started", "ended", "note"].includes(name));
    const makeSelect = (/** @type {number} */ at) => {
      const former = this.state.group[at] ?? "";
      const shown = [...new Set([...usable, ...(former ? [former] : [])])];
      const options = shown.map((name) => make("option", { value: name, selected: name === former }, name));
      const select = make("select", { "data-action": `group ${at}`, "aria-label": at ? "Then group by" : "Group by", onchange: () => this.setGroup(at, select.value) }, make("option", { value: "" }, at ? "then by" : "no groups"), options);
      return select;
    };
    fill(this.grouping, makeSelect(0), this.state.group.length > 0 && makeSelect(1));
  }

  /** @param {number} at @param {string} name */
  setGroup(at, name) {
    const group = [...this.state.group];
    group[at] = name;
    this.change({ group: [...new Set(group.filter(Boolean))] });
  }

  showHeads() {
    this.measure();
    const keys = parseSort(this.state.sort);
    const check = make("th", { scope: "col", class: "check" }, make("input", { type: "checkbox", "aria-label": "Select all that the filter leaves", checked: false, onclick: () => this.selectAll() }));
    this.pin(check, -1);
    const heads = this.columns.map((name, at) => {
      const place = keys.findIndex((key) => key.name === name);
      const mark = place < 0 ? "" : `\u00a0${keys[place].descending ? "↓" : "↑"}${keys.length > 1 ? place + 1 : ""}`;
      const sorted = place < 0 ? null : keys[place].descending ? "descending" : "ascending";
      const button = make("button", { type: "button", class: "head", draggable: "true", "data-action": `sort by ${name}`, title: this.describe(name), onclick: (/** @type {MouseEvent} */ event) => this.sortBy(name, event.shiftKey), onkeydown: (/** @type {KeyboardEvent} */ event) => this.onHeadKey(event, name) }, make("span", { class: "title" }, name), make("span", { "aria-hidden": "true" }, mark));
      button.addEventListener("dragstart", (event) => event.dataTransfer?.setData("text/plain", name));
      const handle = make("span", { class: "handle", "aria-hidden": "true", onpointerdown: (/** @type {PointerEvent} */ event) => this.startSizing(event, name) });
      const head = make("th", { scope: "col", class: this.classes[at], "aria-sort": sorted, ondragover: (/** @type {DragEvent} */ event) => event.preventDefault() }, button, handle);
      head.addEventListener("drop", (event) => {
        event.preventDefault();
        this.moveTo(event.dataTransfer?.getData("text/plain") ?? "", name);
      });
      this.pin(head, at);
      return head;
    });
    fill(this.heads, check, heads, make("th", { class: "rest", "aria-hidden": "true" }));
    this.showSizes();
  }

  showSizes() {
    const widths = this.columns.map((name) => this.widthOf(name));
    const columns = [CHECK_WIDTH, ...widths].map((pixels) => {
      const column = make("col");
      column.style.width = `${pixels}px`;
      return column;
    });
    this.sizes.replaceChildren(...columns, make("col"));
    this.table.style.minWidth = `${CHECK_WIDTH + widths.reduce((sum, pixels) => sum + pixels, 0)}px`;
  }

  /** @param {string} name @returns {number} pixels */
  widthOf(name) {
    return findWidth(this.state, name, matchMedia("(max-width: 700px)").matches);
  }

  /** Find once for all rows how the cells of each column are. */
  measure() {
    let left = CHECK_WIDTH;
    this.classes = this.columns.map((name) => this.classOf(name));
    this.lefts = this.columns.map((name) => {
      const pixels = left;
      left += this.widthOf(name);
      return this.state.pinned.includes(name) ? pixels : null;
    });
  }

  /** Let a cell of a pinned column stay when the table scrolls to the side. @param {HTMLElement} cell @param {number} at -1: the box that selects the row */
  pin(cell, at) {
    const left = at < 0 ? (this.state.pinned.length ? 0 : null) : this.lefts[at];
    if (left === null) return;
    cell.classList.add("pinned");
    cell.style.left = `${left}px`;
  }

  /** @param {string} name @returns {string} */
  describe(name) {
    const objective = this.view?.objectives.find(({ metric }) => metric === name);
    const known = this.available.find((one) => one.name === name);
    const kind = { parameters: "a parameter", metrics: "a metric", own: "" }[known?.kind ?? "own"];
    const what = objective ? objective.words : kind ? `${name}: ${kind}` : name;
    return `${what}. Click sorts, Shift+click sorts by it, too; Shift+← and → move it, + and - size it.`;
  }

  /** @param {string} name @returns {string | null} */
  classOf(name) {
    const known = this.available.find((one) => one.name === name);
    const isNumber = known?.kind === "metrics" || ["rank", "time", "gpus", "workers", "generation"].includes(name);
    return isNumber ? "number" : null;
  }

  /** @param {string} name @param {boolean} isFurther */
  sortBy(name, isFurther) {
    this.change({ sort: name === "rank" ? "" : toggleSort(this.state.sort, name, isFurther) });
  }

  /** @param {KeyboardEvent} event @param {string} name */
  onHeadKey(event, name) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const other = this.columns[this.columns.indexOf(name) + (step ?? 0)];
    if (step && event.shiftKey && other) this.moveTo(name, other);
    else if (event.key === "+" || event.key === "-") this.size(name, this.widthOf(name) + (event.key === "+" ? STEP : -STEP));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Put a column at the place of another one. @param {string} name @param {string} other */
  moveTo(name, other) {
    if (name === other || !this.columns.includes(name) || !this.columns.includes(other)) return;
    const columns = this.columns.filter((one) => one !== name);
    const isLater = this.columns.indexOf(name) < this.columns.indexOf(other);
    columns.splice(columns.indexOf(other) + (isLater ? 1 : 0), 0, name);
    this.change({ columns });
  }

  /** @param {string} name @param {number} pixels */
  size(name, pixels) {
    this.state = { ...this.state, widths: { ...this.state.widths, [name]: clampWidth(pixels) } };
    this.options.onState(this.state);
    this.showSizes();
    if (this.state.pinned.length) this.redraw();
  }

  /** @param {PointerEvent} event @param {string} name */
  startSizing(event, name) {
    event.preventDefault();
    const handle = /** @type {HTMLElement} */ (event.target);
    const begin = event.clientX - this.widthOf(name);
    handle.setPointerCapture(event.pointerId);
    const control = new AbortController();
    handle.addEventListener("pointermove", (move) => this.size(name, move.clientX - begin), { signal: control.signal });
    for (const end of ["pointerup", "pointercancel"]) handle.addEventListener(end, () => control.abort(), { signal: control.signal });
  }

  redraw() {
    this.showHeads();
    this.virtual.refresh(this.lines);
  }

  chooseColumns() {
    const chosen = this.state.columns.length ? this.state.columns : this.usual;
    chooseColumns({ available: this.available, columns: chosen, pinned: this.state.pinned }, (columns, pinned) => this.change({ columns, pinned }));
  }

  /** Read the lines that are drawn, and those that the user reaches next. @param {number} first @param {number} last */
  want(first, last) {
    const margin = CHUNK / 3;
    const from = Math.max(0, Math.floor((first - margin) / CHUNK));
    const to = Math.floor(Math.max(0, Math.min(this.lines - 1, last + margin)) / CHUNK);
    for (let chunk = from; chunk <= to; chunk += 1) this.fetchChunk(chunk);
  }

  /** @param {number} chunk */
  async fetchChunk(chunk) {
    if (this.chunks.has(chunk) || this.asked.has(chunk)) return;
    const reading = this.reading;
    this.asked.add(chunk);
    try {
      const view = await get("/table", { ...this.query, offset: chunk * CHUNK, limit: CHUNK }, this.options.signal);
      if (reading !== this.reading) return;
      this.chunks.set(chunk, view.rows);
      if (this.chunks.size > MOST_CHUNKS) this.chunks.delete([...this.chunks.keys()].sort((one, other) => Math.abs(other - chunk) - Math.abs(one - chunk))[0]);
      const { kept, nodes } = this.virtual;
      if (chunk * CHUNK < kept + nodes.length && (chunk + 1) * CHUNK > kept) this.virtual.refresh(this.lines); // it is in sight
    } catch (error) {
      if (!this.options.signal.aborted) this.options.feed.onReturn(error, () => this.readSoon(), this.options.signal);
    } finally {
      this.asked.delete(chunk);
    }
  }

  /** @param {number} at @returns {TableLine | undefined} */
  lineAt(at) {
    return this.chunks.get(Math.floor(at / CHUNK))?.[at % CHUNK];
  }

  /** @param {number} first @param {number} last @returns {HTMLElement[]} */
  draw(first, last) {
    const focused = document.activeElement?.closest("tr")?.getAttribute("data-id");
    const tag = document.activeElement?.tagName.toLowerCase() ?? "a";
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.drawLine(this.lineAt(at), at));
    if (focused && this.scroller.contains(document.activeElement)) queueMicrotask(() => this.focusRow(focused, tag));
    return rows;
  }

  /** @param {TableLine | undefined} line @param {number} at */
  drawLine(line, at) {
    if (!line) return make("tr", { class: "row", "aria-rowindex": at + 2 }, make("td", { class: "check" }), this.columns.map(() => make("td", {}, "…")), make("td"));
    const key = line.group || line.id;
    const isSelected = this.selected.has(line.id);
    const box = line.group ? null : make("input", { type: "checkbox", checked: isSelected, "aria-label": `Select ${line.id}` });
    const check = make("td", { class: "check" }, box);
    this.pin(check, -1);
    const cells = this.columns.map((name, place) => {
      const cell = make("td", { class: this.classes[place], "data-column": place }, this.makeCell(line, name, place));
      this.pin(cell, place);
      return cell;
    });
    if (line.group && !this.columns.includes("id")) cells[0]?.prepend(this.makeFold(line));
    const kind = line.group ? "row group" : line.inside ? "row member" : "row";
    return make("tr", { class: kind, "data-id": key, "aria-rowindex": at + 2, "aria-selected": isSelected ? "true" : null }, check, cells, make("td"));
  }

  /** @param {TableLine} line @param {string} name @param {number} place @returns {(import("./dom.js").Child)[]} */
  makeCell(line, name, place) {
    const value = line.cells[place] ?? null;
    if (name === "id") return line.group ? [this.makeFold(line), ...this.nameGroup(line)] : [make("a", { href: linkTo(line.id) }, line.id)];
    if (name === "state" && line.state && !line.mixed.includes(place)) return [makeState(line.state), value === "STOPPED_EARLY" && make("span", { class: "soft" }, " early")];
    if (value === null || (line.group && name === "rank")) return [];
    const isMixed = line.mixed.includes(place);
    if (name === "set" && !isMixed) return [make("a", { href: linkTo(String(value)) }, value)];
    if (name === "parent") return [make("a", { href: linkTo(String(value)) }, value)];
    const text = this.showValue(name, value);
    return isMixed && typeof value === "number" ? [make("span", { class: "soft", title: "mean" }, "⌀ "), text] : [isMixed ? make("span", { class: "soft" }, text) : text];
  }

  /** @param {string} name @param {string | number} value */
  showValue(name, value) {
    if (name === "time" && typeof value === "number") return formatSpan(value);
    if ((name === "started" || name === "ended") && typeof value === "string" && value.includes("T")) return formatMoment(value);
    return formatNumber(value);
  }

  /** @param {TableLine} line @returns {import("./dom.js").Child[]} */
  nameGroup(line) {
    /** @type {(string | null)[]} */
    const values = JSON.parse(line.group);
    const count = make("span", { class: "soft" }, ` ${countNoun(line.count, "experiment")}`);
    if (this.state.group.join() === "set") return [make("a", { href: linkTo(values[0] ?? "") }, values[0]), count];
    return [values.map((value) => value ?? "none").join(", "), count];
  }

  /** @param {TableLine} line */
  makeFold(line) {
    const label = `${line.open ? "Fold" : "Unfold"} ${JSON.parse(line.group).map((/** @type {string | null} */ value) => value ?? "none").join(", ")}`;
    return make("button", { type: "button", class: "fold", "aria-expanded": String(line.open), "aria-label": label }, line.open ? "▾" : "▸");
  }

  /** Unfold a group, select a row, or filter by the value that was clicked. @param {MouseEvent} event */
  onClick(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const row = target.closest("tr[data-id]");
    const key = row?.getAttribute("data-id") ?? "";
    const line = this.findLine(key);
    if (!line || target.closest("a")) return;
    if (target.closest(".fold")) return this.toggle(line.group);
    if (target instanceof HTMLInputElement) return event.shiftKey ? void this.selectTo(key) : this.select(key);
    const place = Number(target.closest("td")?.getAttribute("data-column") ?? -1);
    const value = line.cells[place];
    if (place < 0 || value === null || value === undefined || line.mixed.includes(place) || String(getSelection())) return;
    if (["id", "rank"].includes(this.columns[place])) return;
    this.change({ where: addCondition(this.state.where, writeEqual(this.columns[place], value)) });
  }

  /** @param {string} group */
  toggle(group) {
    if (!this.open.delete(group)) this.open.add(group);
    this.read().catch((error) => this.showProblem(error));
  }

  /** @param {string} key @returns {TableLine | undefined} */
  findLine(key) {
    for (const lines of this.chunks.values()) {
      const line = lines.find((one) => (one.group || one.id) === key);
      if (line) return line;
    }
    return undefined;
  }

  /** @param {string} id */
  select(id) {
    if (!this.selected.delete(id)) this.selected.add(id);
    this.last = id;
    this.showSelected();
  }

  /** Return the IDs of all lines of the table, also of those that the page has not read. */
  async readIds() {
    const view = await get("/table", { ...this.query, column: [], limit: MOST_MARKED }, this.options.signal);
    return view.rows.map(({ id }) => id).filter(Boolean);
  }

  /** Select all from the last selected one to this one, whether they are in sight or not. @param {string} id */
  async selectTo(id) {
    const ids = await this.readIds();
    const [one, other] = [ids.indexOf(this.last), ids.indexOf(id)];
    if (one < 0 || other < 0) return this.select(id);
    for (const among of ids.slice(Math.min(one, other), Math.max(one, other) + 1)) this.selected.add(among);
    this.showSelected();
  }

  /** Select all that the filter leaves, members of folded groups, too; none, if all are selected. */
  async selectAll() {
    const view = await get("/table", { ...this.query, group: [], open: [], column: [], limit: MOST_MARKED }, this.options.signal);
    const ids = view.rows.map(({ id }) => id);
    if (ids.every((id) => this.selected.has(id))) this.selected.clear();
    else for (const id of ids) this.selected.add(id);
    this.showSelected();
  }

  clear() {
    this.selected.clear();
    this.showSelected();
  }

  showSelected() {
    this.virtual.refresh(this.lines);
    this.options.onSelect([...this.selected]);
  }

  /** Move with j and k or the arrows, select with x. @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (/** @type {Element} */ (event.target).closest("thead")) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const focused = document.activeElement?.closest("tr")?.getAttribute("data-id") ?? "";
    if (event.key === "x" && focused && !this.findLine(focused)?.group) this.select(focused);
    if (!step) return;
    event.preventDefault();
    const rows = [...this.body.querySelectorAll("tr[data-id]")];
    const at = rows.findIndex((row) => row.getAttribute("data-id") === focused);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    if (!next) return;
    this.virtual.show(Number(next.getAttribute("aria-rowindex")) - 2);
    this.focusRow(next.getAttribute("data-id") ?? "", "a");
  }

  /** @param {string} key @param {string} tag */
  focusRow(key, tag) {
    const row = [...this.body.children].find((one) => one.getAttribute("data-id") === key);
    const target = row?.querySelector(tag) ?? row?.querySelector("a, button, input");
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }

  /** Save what is shown as CSV: all lines, with these columns. @param {HTMLButtonElement} button */
  async saveCsv(button) {
    button.disabled = true;
    try {
      const response = await getResponse("/table/csv", this.query, this.options.signal);
      const url = URL.createObjectURL(await response.blob());
      const link = make("a", { href: url, download: `${this.options.of.join("-") || "experiments"}.csv` });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      ask({ title: "No CSV", text: error instanceof Error ? error.message : String(error), yes: "Try again" }, () => this.saveCsv(button));
    }
    button.disabled = false;
  }
}
