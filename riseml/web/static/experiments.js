// @ts-check
/** The view of all experiments: a live table with a filter, an order, sets that unfold, and a selection. */

import { rewriteAddress } from "./address.js";
import { makeLabels } from "./annotation.js";
import { post } from "./api.js";
import { readClock } from "./clock.js";
import { fill, make, setText } from "./dom.js";
import { countGpus, explainNothing, listHosts, listNames, parseFilter, showsArchived } from "./filter.js";
import { countNoun, formatNumber } from "./format.js";
import { ask, findRunStart, hasEnded, linkTo, makeAge, makeProblem, makeRunTime, makeState } from "./parts.js";
import { describeBriefly } from "./progress.js";
import { explainRights, guard, isForeign, makeScopeChoice, readScope } from "./rights.js";
import { ExperimentList, numberOf, topOf } from "./store.js";
import { makeBoardLink } from "./tensorboard.js";
import { VirtualRows } from "./virtual.js";

/** @import { ExperimentView } from "../wire.js" */

const ROW_HEIGHT = 34; // pixels; style.css has the same
const MOST_COMPARED = 20; // experiments that the server puts side by side
const TEXTS = new Intl.Collator(undefined, { numeric: true }); // localeCompare would create one for each comparison
const RANK = { RUNNING: 0, STARTING: 1, PENDING: 2, BUILDING: 3, CREATED: 4, FAILED: 5, KILLED: 6, FINISHED: 7 };

/** @typedef {import("./filter.js").Row} Row */
/** @typedef {{key: string, label: string, class?: string, value: (row: Row, table: ExperimentTable) => string | number, cell: (row: Row, table: ExperimentTable) => import("./parts.js").Cell}} Column */

/** @type {Column[]} */
const COLUMNS = [
  { key: "id", label: "ID", class: "id", value: (row, table) => (table.list.scope.query ? Date.parse(row.view.created_at) : idValue(row)), cell: (row, table) => table.makeName(row) },
  { key: "state", label: "State", value: ({ view }) => RANK[/** @type {keyof typeof RANK} */ (view.state)], cell: ({ view }) => [makeState(view.state), view.progress ? make("span", { class: "far", title: describeBriefly(view.progress) }, ` ${describeBriefly(view.progress)}`) : ""] },
  { key: "project", label: "Project", class: "project", value: ({ view }) => view.project, cell: ({ view }) => [view.project, isForeign(view.id) && make("span", { class: "soft" }, ` of ${view.user}`)] },
  { key: "parameters", label: "Parameters", class: "parameters optional", value: describe, cell: (row) => [makeLabels(row.view), describe(row)] },
  { key: "metric", label: "Metric", class: "metric", value: (row, table) => table.metricValue(row), cell: (row, table) => table.makeMetric(row) },
  { key: "age", label: "Age", class: "number narrow", value: ({ view }) => -Date.parse(view.created_at), cell: ({ view }) => makeAge(view.created_at) },
  { key: "duration", label: "Duration", class: "number optional duration", value: durationValue, cell: ({ view }) => makeRunTime(view) },
  { key: "gpus", label: "GPUs", class: "number optional gpus", value: ({ view }) => countGpus(view), cell: ({ view }) => countGpus(view) || "" },
  { key: "host", label: "Host", class: "host optional", value: ({ view }) => listHosts(view).join(), cell: ({ view }) => listHosts(view).join(", ") },
];

/** @param {Row} row */
function idValue({ view }) {
  return numberOf(view.id) + Number(view.id.slice(topOf(view.id).length + 1) || 0) / 1e6;
}

/** @param {Row} row */
function durationValue({ view }) {
  const start = findRunStart(view);
  const end = view.ended_at ?? view.waits_since;
  return start === null ? -1 : (end ? Date.parse(end) : readClock()) - start;
}

/** @param {Row} row what distinguishes the row: parameters, or the progress of a set */
function describe({ view }) {
  if (view.search) return view.search.message;
  if (view.type === "set") {
    const ended = view.experiments.filter((one) => hasEnded(one.state)).length;
    const pause = view.reason === "PAUSED" ? ", paused" : "";
    return `${ended} of ${countNoun(view.experiments.length, "experiment")} ended${pause}`;
  }
  const shown = Object.entries(view.parameters).map(([name, value]) => `${name}=${value}`);
  return shown.join("  ") || (view.type === "experiment" ? "" : view.type);
}

/** @param {Row} row the first metric of a visible row, or the best value of a search */
function makeFirstMetric({ metrics, view }) {
  const { search } = view;
  if (search?.best) return [make("span", { class: "soft" }, `best ${search.metric} `), formatNumber(search.best.value)];
  const first = metrics[0];
  if (!first) return "";
  const step = first.last_step === null ? "" : ` at ${formatNumber(first.last_step)}`;
  return [make("span", { class: "soft" }, `${first.name} `), formatNumber(first.last), make("span", { class: "soft" }, step)];
}

class ExperimentTable {
  /** @param {HTMLElement} main @param {import("./app.js").Page} page */
  constructor(main, page) {
    this.page = page;
    /** @type {Set<string>} */
    this.selected = new Set();
    /** @type {Set<string>} sets that are unfolded */
    this.open = new Set();
    const query = new URLSearchParams(location.search);
    this.list = new ExperimentList(page.feed, readScope(query));
    this.filter = query.get("filter") ?? "";
    this.sort = query.get("sort") ?? "-id";
    this.metric = query.get("metric") ?? ""; // the metric of the column; empty: the first one of each row
    this.last = ""; // the ID that was selected last
    this.acted = ""; // the IDs that the shown actions apply to
    /** @type {Row[]} */
    this.rows = [];
    const onFilter = () => this.setFilter(this.input.value);
    this.input = make("input", { type: "search", id: "filter", value: this.filter, placeholder: "state:running  lr<0.1  project:toaster", autocomplete: "off", spellcheck: "false", oninput: onFilter });
    this.count = make("p", { class: "soft count", role: "status" });
    this.picker = make("select", { id: "metric", "aria-label": "Metric of the column", onchange: () => this.chooseMetric(this.picker.value), onfocus: () => this.listMetrics() });
    this.actions = make("div", { class: "actions", role: "toolbar", "aria-label": "Selected experiments" });
    this.heads = make("tr", { class: "row" });
    this.body = make("tbody");
    this.table = make("table", { class: "rows" }, make("caption", { class: "hidden" }, "Experiments"), make("thead", {}, this.heads), this.body);
    this.scroller = make("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Experiments" }, this.table);
    this.note = make("div");
    const space = () => make("tr", { class: "space", "aria-hidden": "true" });
    const draw = (/** @type {number} */ first, /** @type {number} */ last) => this.draw(first, last);
    const shown = (/** @type {number} */ first, /** @type {number} */ last) => this.wantMetrics(first, last);
    this.virtual = new VirtualRows({ scroller: this.scroller, rows: this.body, height: ROW_HEIGHT, draw, shown, space }, page.signal);
    this.arrange(main);
    this.list.onChange = () => this.update();
    this.list.onMetrics = () => this.showNewMetrics();
  }

  /** @param {HTMLElement} main */
  arrange(main) {
    const label = make("label", { class: "filter", for: "filter" }, make("span", { class: "hidden" }, "Filter"), this.input);
    fill(main, make("div", { class: "bar" }, make("h1", {}, "Experiments"), makeScopeChoice(this.list.scope, (scope) => this.chooseScope(scope)), label, make("label", { class: "wide-only" }, "Metric ", this.picker), this.count, this.actions), this.note, this.scroller);
    document.addEventListener("keydown", (event) => this.onKey(event), { signal: this.page.signal });
    this.showMetrics();
    this.follow();
    this.showHeads();
    if (this.sort.endsWith("metric") && !this.metric) this.chooseFirstMetric().then(() => this.update());
  }

  /** @param {import("./rights.js").Scope} scope */
  chooseScope(scope) {
    this.clear();
    this.list.choose(scope).catch((error) => fill(this.note, makeProblem(error)));
    this.remember();
  }

  /** Follow the values of the metrics that the column and the filter name. */
  follow() {
    this.list.follow([...new Set([...listNames(this.filter), ...(this.metric ? [this.metric.toLowerCase()] : [])])]);
  }

  async listMetrics() {
    await this.list.readNames().catch((error) => console.debug(error));
    this.showMetrics();
  }

  showMetrics() {
    const names = [...new Set([...this.list.names, ...(this.metric ? [this.metric] : [])])];
    if (this.picker.options.length === names.length + 1) return;
    const options = names.map((name) => make("option", { value: name, selected: name === this.metric }, name));
    fill(this.picker, make("option", { value: "" }, "first of each"), options);
  }

  /** @param {string} metric */
  chooseMetric(metric) {
    this.metric = metric;
    if (!metric && this.sort.endsWith("metric")) this.sort = "-id";
    this.follow();
    this.showHeads();
    this.update();
    this.remember();
  }

  /** @param {Row} row @returns {number} the chosen metric; of a search for it the best value, of another set the value that comes first in the order */
  metricValue(row) {
    const { search } = row.view;
    if (search?.best && search.metric === this.metric) return search.best.value;
    const sign = this.sort.startsWith("-") ? -1 : 1;
    const values = [row, ...row.view.experiments.map((one) => this.makeRow(one, true))].map((one) => this.readMetric(one)).filter((value) => value !== null);
    return values.length ? sign * Math.min(...values.map((value) => sign * /** @type {number} */ (value))) : sign * Number.MAX_VALUE;
  }

  /** @param {Row} row @returns {number | null} */
  readMetric({ view, metrics }) {
    const found = metrics.find((metric) => metric.name === this.metric)?.last;
    const value = found ?? this.list.lasts.get(this.metric.toLowerCase())?.get(view.id);
    return typeof value === "number" && Number.isFinite(value) ? value : null;
  }

  /** @param {Row} row */
  makeMetric(row) {
    if (!this.metric) return makeFirstMetric(row);
    const value = this.metricValue(row);
    return Math.abs(value) === Number.MAX_VALUE ? "" : formatNumber(value);
  }

  showHeads() {
    const all = make("th", { scope: "col", class: "check" }, make("span", { class: "hidden" }, "Select"));
    const heads = COLUMNS.map((column) => {
      const direction = this.sort === column.key ? "ascending" : this.sort === `-${column.key}` ? "descending" : null;
      const mark = direction ? (direction === "ascending" ? "\u00a0↑" : "\u00a0↓") : "";
      const button = make("button", { type: "button", class: "head", "data-action": `sort by ${column.key}`, onclick: () => this.sortBy(column.key) }, column.label, make("span", { "aria-hidden": "true" }, mark));
      return make("th", { scope: "col", class: column.class, "aria-sort": direction }, button);
    });
    fill(this.heads, all, heads);
  }

  /** @param {string} key */
  async sortBy(key) {
    if (key === "metric" && !this.metric) await this.chooseFirstMetric();
    this.sort = this.sort === `-${key}` ? key : `-${key}`;
    this.showHeads();
    this.update();
    this.remember();
  }

  /** Choose the metric by which all rows are sorted: the most frequent one, unless the user has chosen one. */
  async chooseFirstMetric() {
    await this.listMetrics();
    this.metric = this.list.names[0] ?? "";
    this.picker.value = this.metric;
    this.follow();
  }

  /** @param {string} text */
  setFilter(text) {
    this.filter = text;
    this.follow();
    this.update();
    this.scroller.scrollTop = 0;
    this.remember();
  }

  /** Write filter and order into the address, which the user can send to others. */
  remember() {
    const query = new URLSearchParams();
    if (this.list.scope.query) query.set("of", this.list.scope.query);
    if (this.filter) query.set("filter", this.filter);
    if (this.sort !== "-id") query.set("sort", this.sort);
    if (this.metric) query.set("metric", this.metric);
    rewriteAddress(`/${query.size ? `?${query}` : ""}`);
  }

  update() {
    this.table.setAttribute("class", this.list.scope.query ? "rows named" : "rows"); // IDs name users
    const matches = parseFilter(this.filter);
    const column = COLUMNS.find((one) => one.key === this.sort.replace(/^-/, "")) ?? COLUMNS[0];
    const sign = this.sort.startsWith("-") ? -1 : 1;
    /** @type {Map<Row, string | number>} */
    const values = new Map();
    const valueOf = (/** @type {Row} */ row) => {
      const known = values.get(row);
      if (known !== undefined) return known;
      const value = column.value(row, this);
      values.set(row, value);
      return value;
    };
    const order = (/** @type {Row} */ one, /** @type {Row} */ other) => sign * compareValues(valueOf(one), valueOf(other)) || idValue(other) - idValue(one);
    const views = [...this.list.views.values()].filter((view) => !view.archived || !hasEnded(view.state) || showsArchived(this.filter));
    const tops = views.map((view) => this.makeRow(view, false));
    /** @type {Row[]} */
    const rows = [];
    for (const top of tops.sort(order)) {
      const members = top.view.experiments.map((one) => this.makeRow(one, true)).filter(matches);
      if (!matches(top) && !members.length) continue;
      rows.push(top);
      if (this.open.has(top.id)) rows.push(...members.sort(order));
    }
    this.rows = rows;
    const shown = rows.filter((row) => !row.isMember).length;
    const all = countNoun(views.length, "experiment") + (this.list.isComplete ? "" : " so far");
    setText(this.count, shown === views.length ? all : `${formatNumber(shown)} of ${all}`);
    this.showEmpty();
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.virtual.refresh(rows.length);
    this.showActions();
  }

  /** Show metrics that have arrived for visible rows; sort all rows again only if the order or the filter requires it. */
  showNewMetrics() {
    if (this.filter || this.sort.endsWith("metric")) return this.update();
    this.rows.forEach((row, at) => {
      const metrics = this.list.metrics.get(row.id) ?? row.metrics;
      if (metrics === row.metrics) return;
      row.metrics = metrics;
      this.virtual.redraw(at);
    });
  }

  showEmpty() {
    if (this.rows.length || !this.list.isComplete) return fill(this.note);
    if (!this.list.views.size) {
      if (this.page.feed.connection !== "lost") fill(this.note, makeFirstSteps());
      return;
    }
    const fault = explainNothing(this.filter, this.list.views.values(), this.list.names);
    const all = make("button", { type: "button", onclick: () => { this.input.value = ""; this.setFilter(""); } }, "Show all");
    fill(this.note, make("p", { class: "empty" }, "No experiment matches this filter. ", fault, " ", all));
  }

  /** @param {ExperimentView} view @param {boolean} isMember @returns {Row} */
  makeRow(view, isMember) {
    return { id: view.id, view, isMember, metrics: this.list.metrics.get(view.id) ?? view.metrics, lasts: this.list.lasts };
  }

  /** @param {number} first @param {number} last @returns {HTMLElement[]} */
  draw(first, last) {
    const rows = this.rows.slice(first, last);
    const focused = document.activeElement?.closest("tr")?.getAttribute("data-id");
    const [isLink, isFold] = ["A", "BUTTON"].map((tag) => document.activeElement?.tagName === tag);
    const drawn = rows.map((row, at) => this.drawRow(row, first + at));
    if (focused) queueMicrotask(() => this.focusRow(focused, isLink ? "a" : isFold ? "button" : "input"));
    return drawn;
  }

  /** Request the metrics of the rows that are drawn. @param {number} first @param {number} last */
  wantMetrics(first, last) {
    this.list.want(this.rows.slice(first, last).filter(({ view }) => view.type === "experiment" && view.started_at).map((row) => row.id));
  }

  /** Move the focus to a part of a row, for example after the row was drawn again. @param {string} id @param {string} tag */
  focusRow(id, tag) {
    const row = [...this.body.children].find((one) => one.getAttribute("data-id") === id);
    const target = row?.querySelector(tag);
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }

  /** @param {Row} row @param {number} at */
  drawRow(row, at) {
    const isSelected = this.selected.has(row.id);
    const check = make("input", { type: "checkbox", checked: isSelected, "aria-label": `Select ${row.id}`, onclick: (/** @type {MouseEvent} */ event) => (event.shiftKey ? this.selectTo(row.id) : this.select(row.id)) });
    const cells = COLUMNS.map((column) => {
      const content = column.cell(row, this);
      return make("td", { class: column.class }, ...(Array.isArray(content) ? content : [content]));
    });
    const kind = row.isMember ? "row member" : "row";
    return make("tr", { class: kind, "data-id": row.id, "aria-rowindex": at + 2, "aria-selected": isSelected ? "true" : null }, make("td", { class: "check" }, check), cells);
  }

  /** @param {Row} row */
  makeName(row) {
    const link = make("a", { href: linkTo(row.id), title: row.id }, row.id);
    if (row.view.type !== "set") return link;
    const isOpen = this.open.has(row.id);
    const toggle = () => {
      if (!this.open.delete(row.id)) this.open.add(row.id);
      this.update();
    };
    const label = `${isOpen ? "Fold" : "Unfold"} set ${row.id}`;
    return [make("button", { type: "button", class: "fold", "aria-expanded": String(isOpen), "aria-label": label, onclick: toggle }, isOpen ? "▾" : "▸"), link];
  }

  /** Select all rows from the last selected one to this one. @param {string} id */
  selectTo(id) {
    const [one, other] = [this.last, id].map((name) => this.rows.findIndex((row) => row.id === name));
    if (one < 0) return this.select(id);
    for (const row of this.rows.slice(Math.min(one, other), Math.max(one, other) + 1)) this.selected.add(row.id);
    this.virtual.refresh();
    this.showActions();
  }

  /** @param {string} id */
  select(id) {
    if (!this.selected.delete(id)) this.selected.add(id);
    this.last = id;
    this.virtual.refresh();
    this.showActions();
  }

  showActions() {
    const ids = [...this.selected];
    if (ids.join() === this.acted) return; // an open dialog returns the focus to its button
    this.acted = ids.join();
    if (!ids.length) return fill(this.actions);
    const isTooMany = ids.length > MOST_COMPARED;
    const many = make("span", { class: "soft" }, `at most ${MOST_COMPARED} can be compared`);
    const compare = make("a", { class: "button", href: `/compare?${ids.map((id) => `of=${encodeURIComponent(id)}`).join("&")}` }, "Compare");
    const kill = make("button", { type: "button", class: "danger", onclick: () => this.kill(ids) }, "Kill");
    const clear = make("button", { type: "button", onclick: () => this.clear() }, "Clear");
    const fixed = this.rows.find((row) => this.selected.has(row.id) && explainRights(row.view));
    guard([kill], fixed ? explainRights(fixed.view) : "");
    fill(this.actions, make("span", { class: "soft" }, `${ids.length} selected`), ids.length > 1 && (isTooMany ? many : compare), !ids.some(isForeign) && makeBoardLink(ids), kill, clear);
  }

  clear() {
    this.selected.clear();
    this.virtual.refresh();
    this.showActions();
  }

  /** @param {string[]} ids */
  kill(ids) {
    const text = `This ends ${ids.join(", ")} now. What they have written stays.`;
    ask({ title: `Kill ${countNoun(ids.length, "experiment")}?`, text, yes: "Kill", isDangerous: true }, async () => {
      for (const id of ids) await post(`/experiments/${encodeURIComponent(id)}/kill`);
      this.clear();
    });
  }

  /** Move with j and k, or with the arrows inside the table; select with x. @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
    const target = /** @type {Element} */ (event.target);
    const isTaken = ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || target.closest("dialog") || event.key.startsWith("Arrow");
    if (isTaken && !this.scroller.contains(target)) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const focused = document.activeElement?.closest("tr")?.getAttribute("data-id");
    const at = this.rows.findIndex((row) => row.id === focused);
    if (event.key === "x" && focused) this.select(focused);
    if (!step || !this.rows.length) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(this.rows.length - 1, at < 0 ? 0 : at + step));
    this.virtual.show(next);
    this.focusRow(this.rows[next].id, "a");
  }
}

/** @returns {HTMLElement} what to do on a server without experiments */
export function makeFirstSteps() {
  const step = (/** @type {string} */ command, /** @type {string} */ what) => make("li", {}, make("code", {}, command), ` ${what}`);
  return make("div", { class: "empty" },
    make("p", {}, "There is no experiment so far. In the folder of a program that trains:"),
    make("ol", {}, step("riseml init", "writes a riseml.yml for it"), step("riseml validate", "checks the file"), step("riseml train", "runs it, and it appears here")),
  );
}

/** @param {string | number} one @param {string | number} other */
function compareValues(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return TEXTS.compare(String(one), String(other));
}

/** Show all experiments. @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showExperiments(main, page) {
  const table = new ExperimentTable(main, page);
  try {
    await table.list.start(page.signal);
  } catch (error) {
    if (!page.signal.aborted) fill(table.note, makeProblem(error));
  }
}
