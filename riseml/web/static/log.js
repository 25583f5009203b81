// @ts-check
/** The merged log of an experiment: quick access to any of a million lines, live updates at the end, a search, and links to lines. */

import { rewriteAddress } from "./address.js";
import { get } from "./api.js";
import { appendColoured, takeLastState } from "./ansi.js";
import { fill, make, setText } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { countNoun, formatClock, formatMoment, formatNumber } from "./format.js";
import { linkTo, makeProblem } from "./parts.js";
import { VirtualRows } from "./virtual.js";

/** @import { ExperimentView, LinePage, NumberedLine } from "../wire.js" */

const ROW_HEIGHT = 20; // pixels; views.css has the same
const CHUNK = 500; // lines that are asked for at once
const END = 2 * CHUNK; // lines of the end that are asked for at once: more than a screen has, and always a whole chunk
const MOST_CHUNKS = 60; // that are kept
const PAUSE = 100; // milliseconds between two readings of the end at least: a job may print without a pause
const LONGEST = 5000; // characters of a line that are shown
const LONGEST_SOUGHT = 200; // characters that the server searches for
const COLOURS = 8;
const LEVELS = { "": "all lines", info: "info and worse", warning: "warnings and errors", error: "errors" };


/** @type {import("./experiment.js").Tab} */
export function showLog(page) {
  const log = new LogView(page);
  log.grow();
  return { update: () => log.showJobs(), grow: () => log.grow() };
}

class LogView {
  /** @param {import("./experiment.js").ExperimentPage} page */
  constructor(page) {
    this.page = page;
    /** @type {Map<number, NumberedLine[]>} by number of the chunk */
    this.chunks = new Map();
    this.total = 0;
    const query = new URLSearchParams(location.search);
    this.marked = Number(query.get("line") ?? "-1");
    this.level = Object.hasOwn(LEVELS, query.get("level") ?? "") ? (query.get("level") ?? "") : "";
    this.follows = this.marked < 0;
    /** @type {number[]} */
    this.matches = [];
    this.match = -1;
    this.lastTop = 0; // how far the lines were scrolled
    this.grow = makeCoalesced(async () => {
      await this.readSafely();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    });
    this.find = makeCoalesced(() => this.search().catch((error) => setText(this.found, error.message)));
    this.readSeen = makeCoalesced(() => this.readChunks());
    this.jobs = make("select", { id: "job", "aria-label": "Jobs", onchange: () => this.chooseJob() });
    this.levels = make("select", { "aria-label": "Levels", onchange: () => this.chooseLevel(this.levels.value, -1) }, Object.entries(LEVELS).map(([value, label]) => make("option", { value, selected: value === this.level }, label)));
    this.input = make("input", { type: "search", placeholder: "Search the log", maxlength: LONGEST_SOUGHT, "aria-label": "Search the log", autocomplete: "off", spellcheck: "false", oninput: () => this.find(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.onSearchKey(event) });
    this.found = make("span", { class: "soft", role: "status" });
    this.box = make("input", { type: "checkbox", checked: this.follows, onchange: () => this.setFollowing(this.box.checked) });
    this.size = make("span", { class: "soft" });
    this.rows = make("div", { class: "log-lines" });
    this.scroller = make("div", { class: "scroller log", tabindex: "0", role: "region", "aria-label": "Log" }, this.rows);
    this.note = make("div");
    const space = () => make("div", { "aria-hidden": "true" });
    const draw = (/** @type {number} */ first, /** @type {number} */ last) => this.draw(first, last);
    this.virtual = new VirtualRows({ scroller: this.scroller, rows: this.rows, height: ROW_HEIGHT, draw, space }, page.signal);
    this.arrange();
  }

  get path() {
    return /** @type {const} */ (`/experiments/${encodeURIComponent(this.page.id)}/lines`);
  }

  arrange() {
    const previous = make("button", { type: "button", "aria-label": "Previous match", onclick: () => this.step(-1) }, "↑");
    const next = make("button", { type: "button", "aria-label": "Next match", onclick: () => this.step(1) }, "↓");
    const bar = make("div", { class: "bar" }, this.jobs, this.levels, this.input, previous, next, this.found, make("label", {}, this.box, " follow"), this.size);
    fill(this.page.place, bar, this.note, this.scroller);
    this.scroller.addEventListener("wheel", () => this.noteScroll(), { passive: true, signal: this.page.signal });
    this.scroller.addEventListener("keydown", () => this.noteScroll(), { signal: this.page.signal });
    this.scroller.addEventListener("scroll", () => this.notePlace(), { passive: true, signal: this.page.signal });
    this.showJobs();
  }

  /** Read the end, or say why it cannot be had, where nothing is shown so far. */
  async readSafely() {
    const { signal, feed } = this.page;
    try {
      await this.readEnd();
    } catch (error) {
      if (signal.aborted) return;
      if (!this.total) fill(this.note, makeProblem(error));
      feed.onReturn(error, () => this.grow(), signal);
    }
  }

  showJobs() {
    const { id, view } = this.page;
    const base = view.id;
    const options = [[base, "all jobs"], ...this.listJobs(view, base)];
    if (this.jobs.options.length === options.length) return;
    fill(this.jobs, options.map(([value, label]) => make("option", { value, selected: value === id }, label)));
  }

  /** @param {ExperimentView} view @param {string} base @returns {string[][]} */
  listJobs(view, base) {
    const known = view.jobs.map((job) => [job.id, job.name]);
    const isOne = this.page.id !== base && !known.some((/** @type {string[]} */ [id]) => id === this.page.id);
    return isOne ? [...known, [this.page.id, this.page.id.slice(base.length + 1)]] : known;
  }

  chooseJob() {
    this.follow(linkTo(this.jobs.value, "log"), this.level, -1);
  }

  /** Show lines of a level, or all of them. @param {string} level @param {number} line that is marked; -1: none */
  chooseLevel(level, line) {
    this.follow(location.pathname, level, line);
  }

  /** @param {string} path @param {string} level @param {number} line */
  follow(path, level, line) {
    const query = new URLSearchParams({ ...(level ? { level } : {}), ...(line < 0 ? {} : { line: String(line) }) }).toString();
    const link = make("a", { href: query ? `${path}?${query}` : path });
    this.page.place.append(link);
    link.click();
    link.remove();
  }

  /** The parameters of requests other than line numbers. */
  get filter() {
    return { level: this.level || null };
  }

  /** @param {number} first @param {number} count @returns {Promise<LinePage>} */
  ask(first, count) {
    return get(this.path, { first, count, ...this.filter }, this.page.signal);
  }

  /** Read what is new at the end, and show it if the user follows. */
  async readEnd() {
    const former = this.total;
    const known = this.countKept(former);
    let { total, lines } = former ? await this.ask(known, CHUNK - (known % CHUNK)) : await this.ask(-END, END);
    this.keep(lines);
    if (former && this.follows && total > this.countKept(total)) {
      ({ total, lines } = await this.ask(-END, END)); // a job has printed more than that meanwhile
      this.keep(lines);
    }
    if (total < former) this.lose(total);
    this.total = total;
    setText(this.size, countNoun(total, "line"));
    if (!total) fill(this.note, make("p", { class: "empty" }, this.level ? "No line has this level so far. Most lines of a training have none." : "No job has printed anything so far."));
    else if (this.note.firstChild) fill(this.note);
    this.showLines();
    if (!former && total && this.marked >= 0) this.virtual.show(this.marked);
  }

  /** Read all lines again: the log has lost its end, as after a crash of the machine. @param {number} total */
  lose(total) {
    this.chunks.clear();
    this.total = total;
  }

  /** Show the lines that have come; those that are drawn stay. */
  showLines() {
    const lacking = this.virtual.shown.filter(([, row]) => /** @type {Element} */ (row).childNodes.length < 2);
    this.virtual.grow(this.total);
    for (const [number] of lacking) this.virtual.redraw(number);
    if (this.follows) this.virtual.showEnd();
    this.lastTop = this.scroller.scrollTop;
  }

  /** Return up to which line, and without it, the chunk of the last of so many lines is kept. @param {number} total */
  countKept(total) {
    const chunk = Math.floor(Math.max(0, total - 1) / CHUNK);
    return chunk * CHUNK + (this.chunks.get(chunk)?.length ?? 0);
  }

  /** Keep lines that follow each other; not those of a chunk of which former ones are lacking. @param {NumberedLine[]} lines */
  keep(lines) {
    for (let at = 0; at < lines.length; ) {
      const [chunk, place] = [Math.floor(lines[at].number / CHUNK), lines[at].number % CHUNK];
      const known = this.chunks.get(chunk) ?? [];
      const found = [...known.slice(0, place), ...lines.slice(at, at + CHUNK - place)];
      if (known.length >= place && found.length >= known.length) this.keepChunk(chunk, found);
      at += CHUNK - place;
    }
  }

  /** @param {number} chunk @param {NumberedLine[]} lines */
  keepChunk(chunk, lines) {
    this.chunks.delete(chunk);
    this.chunks.set(chunk, lines);
    for (const old of this.chunks.keys()) {
      if (this.chunks.size <= MOST_CHUNKS) break;
      this.chunks.delete(old);
    }
  }

  /** @param {number} first @param {number} last */
  draw(first, last) {
    const rows = [];
    for (let number = first; number < last; number += 1) rows.push(this.drawLine(number));
    return rows;
  }

  /** @param {number} number */
  drawLine(number) {
    const line = this.findLine(number);
    const row = make("div", { class: "log-line", "data-stream": line?.stream, "data-marked": number === this.marked ? "true" : null });
    const shown = this.level ? (line?.whole ?? -1) : number; // a line of a level leads to its place among all lines
    if (shown < 0) return row;
    const link = make("a", { class: "log-number", href: `${location.pathname}?line=${shown}`, "aria-label": `Line ${shown + 1}`, onclick: (/** @type {Event} */ event) => this.mark(event, shown) }, String(shown + 1));
    row.append(link);
    if (!line) return row;
    const job = line.id.slice(this.page.view.id.length + 1);
    const text = make("span", { class: "log-text" });
    const shownText = takeLastState(line.text);
    appendColoured(text, shownText.length > LONGEST ? `${shownText.slice(0, LONGEST)} …` : shownText);
    row.append(make("time", { datetime: line.time, title: formatMoment(line.time) }, formatClock(line.time)), make("span", { class: `log-job colour-${this.colourOf(line.id)}` }, job), text);
    return row;
  }

  /** @param {string} id */
  colourOf(id) {
    return Math.max(0, this.page.view.jobs.findIndex((job) => job.id === id)) % COLOURS;
  }

  /** Return a line; if it is missing, return nothing and request its chunk. @param {number} number */
  findLine(number) {
    const line = this.readKept(number);
    if (!line) this.readSeen();
    return line;
  }

  /** @param {number} number @returns {NumberedLine | undefined} */
  readKept(number) {
    return this.chunks.get(Math.floor(number / CHUNK))?.[number % CHUNK];
  }

  /** Read the visible chunks, one at a time; skip chunks that the user has scrolled past meanwhile. */
  async readChunks() {
    await Promise.resolve(); // the rows are drawn then
    for (;;) {
      const lacking = this.virtual.shown.find(([number]) => !this.readKept(number));
      if (!lacking || !(await this.readChunk(Math.floor(lacking[0] / CHUNK)))) return;
    }
  }

  /** Read the missing lines of a chunk, and return how many have arrived. @param {number} chunk */
  async readChunk(chunk) {
    const known = this.chunks.get(chunk)?.length ?? 0;
    const { total, lines } = await this.ask(chunk * CHUNK + known, CHUNK - known);
    this.keep(lines);
    if (!lines.length) this.lose(total);
    this.showLines();
    return lines.length;
  }

  /** @param {Event} event @param {number} number */
  mark(event, number) {
    event.preventDefault();
    if (this.level) return this.chooseLevel("", number);
    this.marked = number;
    rewriteAddress(`${location.pathname}?line=${number}`);
    this.setFollowing(false);
    this.showMark();
  }

  showMark() {
    for (const [number, row] of this.virtual.shown) {
      if (number === this.marked) /** @type {Element} */ (row).setAttribute("data-marked", "true");
      else /** @type {Element} */ (row).removeAttribute("data-marked");
    }
  }

  /** Stop following when the user scrolls up, also with the scroll bar or a finger. */
  notePlace() {
    const { scrollTop } = this.scroller;
    if (scrollTop < this.lastTop && !this.virtual.isAtEnd) this.setFollowing(false);
    this.lastTop = scrollTop;
  }

  noteScroll() {
    requestAnimationFrame(() => this.setFollowing(this.virtual.isAtEnd));
  }

  /** @param {boolean} follows */
  setFollowing(follows) {
    const begins = follows && !this.follows;
    this.follows = follows;
    this.box.checked = follows;
    if (begins) this.virtual.showEnd();
  }

  async search() {
    const text = this.input.value;
    this.matches = [];
    this.match = -1;
    if (!text) return setText(this.found, "");
    let first = 0;
    for (;;) {
      const { matches, next } = await get(`${this.path}/matches`, { text, first, ...this.filter }, this.page.signal);
      if (text !== this.input.value) return;
      this.matches.push(...matches);
      setText(this.found, `${formatNumber(this.matches.length)} found${next === null ? "" : " so far"}`);
      if (next === null || this.matches.length >= 10_000) break;
      first = next;
    }
    this.step(1);
  }

  /** @param {KeyboardEvent} event */
  onSearchKey(event) {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
  }

  /** Go to the next or the previous match. @param {number} by */
  step(by) {
    const count = this.matches.length;
    if (!count) return;
    this.match = (this.match + by + count) % count;
    this.marked = this.matches[this.match];
    this.setFollowing(false);
    setText(this.found, `${formatNumber(this.match + 1)} of ${formatNumber(count)}`);
    this.virtual.show(this.marked);
    this.showMark();
  }
}
