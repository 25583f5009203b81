// @ts-check
/**
 * A table of experiments whose columns, order and groups the user chooses. The server finds, sorts and groups; the page
 * holds the lines that are in sight and some around them.
 */

import { ApiError, get, getResponse } from "./api.js";
import { chooseColumns } from "./column_panel.js";
import { fill, make, setText } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatNumber } from "./format.js";
import { ask, makeProblem } from "./parts.js";
import { explainRights, isForeign, topOf } from "./rights.js";
import { isSet, makeCell, makeFirstSteps, makeFold, nameSet } from "./table_cells.js";
import { addCondition, clampWidth, findWidth, parseSort, splitFilter, toggleSort, writeEqual } from "./table_state.js";
import { VirtualRows } from "./virtual.js";

/** @import { TableColumn, TableLine, TableView } from "../wire.js" */
/** @import { Changes } from "./feed.js" */
/** @import { TableState } from "./table_state.js" */

const ROW_HEIGHT = 34; // pixels; views.css has the same
const CHUNK = 300; // lines of one request
const MOST_CHUNKS = 12; // kept
const MOST_MARKED = 10_000; // experiments that are selected at once
const PAUSE = 1000; // milliseconds between two readings because of changes, at least
const SHARE = 12; // a table that is read again for changes takes at most a twelfth of the time
const NEWEST = 60; // experiments that are shown first
const MOST_LIVE = 100; // lines whose values are read while they run
const CHECK_WIDTH = 30; // pixels
const UNGROUPED = ["id", "rank", "time", "created", "started", "ended", "note", "progress", "latest"];
const STEP = 16; // pixels by which a key sizes a column

/**
 * @typedef {object} TableOptions
 * @property {AbortSignal} signal
 * @property {import("./feed.js").Feed} feed
 * @property {string} caption
 * @property {string[]} of IDs; empty: all experiments
 * @property {boolean} [isWholePage] its keys need no focus in it
 * @property {string} [project] empty: all projects
 * @property {import("./rights.js").Scope} [scope] whose experiments; one's own without it
 * @property {TableState} state
 * @property {(state: TableState) => void} onState is called when the user has changed it
 * @property {(ids: string[], reason: string) => void} onSelect gets what is selected, and why it cannot all be changed
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
    /** @type {Map<string, string>} IDs, and why the user cannot change each of them; empty: they can */
    this.selected = new Map();
    this.last = ""; // the ID that was selected last
    /** @type {Map<number, TableLine[]>} lines by the number of their chunk */
    this.chunks = new Map();
    /** @type {Set<number>} chunks that are asked for */
    this.asked = new Set();
    this.reading = 0; // number of the newest order, filter or columns
    this.shown = 0; // number of the one whose lines are shown; 0: none is
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
    this.input = make("input", { type: "search", class: "conditions", value: this.state.where, "aria-label": "Filter the table", placeholder: "state:running  lr<0.1  project:toaster", autocomplete: "off", spellcheck: "false", oninput: () => this.setFilter(this.input.value) });
    this.grouping = make("div", { class: "grouping" });
    const space = () => make("tr", { class: "space", "aria-hidden": "true" });
    const draw = (/** @type {number} */ first, /** @type {number} */ last) => this.draw(first, last);
    const shown = (/** @type {number} */ first, /** @type {number} */ last) => this.want(first, last);
    this.virtual = new VirtualRows({ scroller: this.scroller, rows: this.body, height: ROW_HEIGHT, draw, shown, space }, options.signal);
    /** @type {Set<string>} IDs of experiments that have printed or reported since their lines were read */
    this.grown = new Set();
    this.readSoon = this.makePaced(() => this.read());
    this.readLive = this.makePaced(() => this.fetchLive());
    this.body.addEventListener("click", (event) => this.onClick(event), { signal: options.signal });
    const keys = options.isWholePage ? document : this.scroller;
    keys.addEventListener("keydown", (event) => this.onKey(/** @type {KeyboardEvent} */ (event)), { signal: options.signal });
    options.feed.listen((changes) => this.note(changes), options.signal);
    matchMedia("(max-width: 700px)").addEventListener("change", () => this.redraw(), { signal: options.signal });
  }

  /** @returns {HTMLElement[]} what is above the table: filter, groups, columns, CSV */
  makeTools() {
    const columns = make("button", { type: "button", "data-action": "columns", onclick: () => this.chooseColumns() }, "Columns");
    const csv = make("button", { type: "button", "data-action": "csv", onclick: () => this.saveCsv(csv) }, "CSV");
    return [make("label", { class: "filter" }, this.input), this.grouping, columns, csv];
  }

  /**
   * Return a task that runs again for changes: after a pause that grows with the time that it takes.
   * @param {() => Promise<void>} task
   */
  makePaced(task) {
    return makeCoalesced(async () => {
      const begun = performance.now();
      await task().catch((error) => this.showProblem(error));
      await new Promise((resolve) => setTimeout(resolve, Math.max(PAUSE, (SHARE - 1) * (performance.now() - begun))));
    });
  }

  /** @param {Changes} changes */
  note({ changed, grown, reset }) {
    const isOwn = (/** @type {string} */ id) => (this.options.of.length ? this.options.of.includes(topOf(id)) : Boolean(this.options.scope?.query) || !isForeign(id));
    if (reset || changed.some(isOwn)) return void this.readSoon();
    for (const id of grown.filter(isOwn)) this.grown.add(id);
    if (this.grown.size) this.readLive();
  }

  /** Read those lines again that are drawn and whose experiments have printed or reported: their order stays. */
  async fetchLive() {
    const { shown, view } = this;
    const { kept, nodes } = this.virtual;
    const drawn = nodes.flatMap((_, at) => this.lineAt(kept + at)?.id || []);
    const ids = drawn.filter((id) => this.grown.has(id)).slice(0, MOST_LIVE);
    this.grown.clear();
    if (!ids.length) return;
    const answer = await get("/table", { ...this.scope, of: ids, column: this.columns, limit: ids.length }, this.options.signal);
    if (shown !== this.shown) return;
    const lines = new Map(answer.rows.map((line) => [line.id, line]));
    const ofAll = new Set(["rank", ...(view?.objectives ?? []).map(({ metric }) => metric)]);
    const stays = this.columns.map((name) => ofAll.has(name));
    for (const [chunk, rows] of this.chunks) this.chunks.set(chunk, rows.map((row) => renewLine(row, lines.get(row.id), stays)));
    this.virtual.refresh(this.lines);
  }

  /** Ask for another order, filter, groups or columns. @returns {Promise<void>} */
  async read() {
    const isFirst = !this.view && this.options.isWholePage && !this.state.where && ["-id", "-created"].includes(this.state.sort);
    if (isFirst) await this.readLines(NEWEST); // ten thousand take a moment longer
    const isWhole = isFirst && this.view && this.view.total + this.view.archived < NEWEST;
    if (!isWhole) await this.readLines(null);
  }

  /** @param {number | null} newest only of so many of the newest experiments */
  async readLines(newest) {
    const reading = (this.reading += 1);
    const first = Math.floor(this.virtual.first / CHUNK);
    const view = await get("/table", { ...this.query, newest, column: this.state.columns, first: this.state.pinned, offset: first * CHUNK, limit: CHUNK, available: true }, this.options.signal);
    if (reading !== this.reading) return;
    this.shown = reading;
    this.available = view.available;
    this.columns = view.columns;
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

  /** Whose experiments, and what else than experiments. */
  get scope() {
    const { scope } = this.options;
    return { all_users: scope?.query ? true : null, team_project: scope?.project || null, companions: this.options.of.length ? null : true };
  }

  get query() {
    const { of, project } = this.options;
    const { where, words } = splitFilter(this.state.where);
    return { ...this.scope, of, project: project || null, where: where || null, word: words, sort: this.state.sort, group: this.state.group, column: this.columns, open: [...this.open] };
  }

  /** @param {unknown} error */
  showProblem(error) {
    if (this.options.signal.aborted) return;
    const isAway = error instanceof ApiError && error.status === 0;
    if (!isAway || !this.view) fill(this.problem, makeProblem(error)); // the page says above that the server is away
    if (!isAway) this.input.setAttribute("aria-invalid", "true");
    this.options.feed.onReturn(error, () => this.readSoon(), this.options.signal);
  }

  /** The user has not changed it so far. */
  get isUntouched() {
    return this.state === this.options.state;
  }

  /** Take another state, which the next reading shows. @param {TableState} state */
  adopt(state) {
    this.state = state;
    this.input.value = state.where;
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
    const usable = [...new Set(names)].filter((name) => !UNGROUPED.includes(name));
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
    chooseColumns({ available: this.available, columns: this.columns, pinned: this.state.pinned }, (columns, pinned) => this.change({ columns, pinned }));
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
    if (!this.shown || this.chunks.has(chunk) || this.asked.has(chunk)) return;
    const { shown } = this;
    this.asked.add(chunk);
    try {
      const view = await get("/table", { ...this.query, offset: chunk * CHUNK, limit: CHUNK }, this.options.signal);
      if (shown !== this.shown) return;
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
    const name = this.nameLine(line);
    const key = name || line.group;
    const isSelected = this.selected.has(name);
    const box = name ? make("input", { type: "checkbox", checked: isSelected, "aria-label": `Select ${name}` }) : null;
    const check = make("td", { class: "check" }, box);
    this.pin(check, -1);
    const cells = this.columns.map((column, place) => {
      const cell = make("td", { class: this.classes[place], "data-column": place }, makeCell(line, column, place, this.state.group));
      this.pin(cell, place);
      return cell;
    });
    if (line.group && !this.columns.includes("id")) cells[0]?.prepend(makeFold(line));
    const kind = line.group ? "row group" : line.inside ? "row member" : "row";
    return make("tr", { class: kind, "data-id": key, "aria-rowindex": at + 2, "aria-selected": isSelected ? "true" : null }, check, cells, make("td"));
  }

  /** Unfold a group, select a row, or filter by the value that was clicked. @param {MouseEvent} event */
  onClick(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const row = target.closest("tr[data-id]");
    const key = row?.getAttribute("data-id") ?? "";
    const line = this.findLine(key);
    if (!line || target.closest("a")) return;
    if (target.closest(".fold")) return this.toggle(line.group);
    if (target instanceof HTMLInputElement) return event.shiftKey ? void this.selectTo(line) : this.select(line);
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
      const line = lines.find((one) => (this.nameLine(one) || one.group) === key);
      if (line) return line;
    }
    return undefined;
  }

  /** @param {TableLine} line @returns {string} the ID by which it is selected; empty: it is a group that is no set */
  nameLine(line) {
    return isSet(line, this.state.group) ? nameSet(line) : line.id;
  }

  /** @param {TableLine} line */
  mark(line) {
    const id = this.nameLine(line);
    if (id) this.selected.set(id, explainRights({ ...line, id }));
  }

  /** @param {TableLine} line */
  select(line) {
    const id = this.nameLine(line);
    if (!id) return;
    if (!this.selected.delete(id)) this.mark(line);
    this.last = id;
    this.showSelected();
  }

  /** Select all from the last selected one to this one, whether they are in sight or not. @param {TableLine} line */
  async selectTo(line) {
    const { rows } = await get("/table", { ...this.query, column: [], limit: MOST_MARKED }, this.options.signal);
    const ids = rows.map((one) => this.nameLine(one));
    const [one, other] = [ids.indexOf(this.last), ids.indexOf(this.nameLine(line))];
    if (one < 0 || other < 0) return this.select(line);
    for (const among of rows.slice(Math.min(one, other), Math.max(one, other) + 1)) this.mark(among);
    this.showSelected();
  }

  /** Select all that the filter leaves, members of folded groups, too; none, if all are selected. */
  async selectAll() {
    const { rows } = await get("/table", { ...this.query, group: [], open: [], column: [], limit: MOST_MARKED }, this.options.signal);
    if (rows.every(({ id }) => this.selected.has(id))) this.selected.clear();
    else for (const line of rows) this.selected.set(line.id, explainRights(line));
    this.showSelected();
  }

  clear() {
    this.selected.clear();
    this.showSelected();
  }

  showSelected() {
    this.virtual.refresh(this.lines);
    this.options.onSelect([...this.selected.keys()], [...this.selected.values()].find(Boolean) ?? "");
  }

  /** Move with j and k, or with the arrows inside the table; select with x. @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return; // the browser's own
    const target = /** @type {Element} */ (event.target);
    const isTaken = ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || target.closest("dialog") || event.key.startsWith("Arrow");
    if ((isTaken && !this.scroller.contains(target)) || target.closest("thead")) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const focused = document.activeElement?.closest("tr")?.getAttribute("data-id") ?? "";
    const line = event.key === "x" && focused ? this.findLine(focused) : undefined;
    if (line) this.select(line);
    if (!step) return;
    event.preventDefault();
    const rows = this.virtual.nodes.flatMap((node) => (node instanceof HTMLElement && node.getAttribute("data-id") ? node : []));
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

/**
 * Return a line as it is now. It stays inside of its group, and keeps what only all lines together say.
 * @param {TableLine} former
 * @param {TableLine | undefined} line
 * @param {boolean[]} stays which cells these are: the rank, and the value that ranks
 */
function renewLine(former, line, stays) {
  if (!line || former.group) return former;
  const cells = line.cells.map((cell, at) => (stays[at] ? former.cells[at] : cell));
  return { ...line, inside: former.inside, cells };
}
