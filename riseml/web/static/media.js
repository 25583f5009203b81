// @ts-check
/**
 * Media of experiments: for each name a slider over the steps, and what each experiment has there. No content becomes a
 * page: a picture is an element that runs no script, from a `data:` address; sound and video play from a `blob:` whose
 * type this list says; SVG is a picture, and everything else is text.
 */

import { showName, stripControls } from "./ansi.js";
import { getResponse } from "./api.js";
import { fill, make, setText } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { decode, makeCode, readAsUrl } from "./file_preview.js";
import { countNoun, formatBytes, formatNumber } from "./format.js";
import { hasEnded, makeLink, makeProblem } from "./parts.js";
import { readMarkdown } from "./markdown.js";
import { makeReportedTable, readReportedTable } from "./reported_table.js";

/** @import { MediaItem, MediaSeries } from "../wire.js" */

/** @typedef {{id: string, items: MediaItem[]}} MediaRun what one experiment has of a name */
/** @typedef {{name: string, kind: MediaSeries["kind"], runs: MediaRun[]}} NamedMedia */

const TYPES = new Map(Object.entries({ png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml", wav: "audio/wav", mp3: "audio/mpeg", ogg: "audio/ogg", mp4: "video/mp4", webm: "video/webm" }));
const MOST = { picture: 16 * 2 ** 20, sound: 64 * 2 ** 20, video: 64 * 2 ** 20, text: 256 * 2 ** 10, table: 4 * 2 ** 20 }; // bytes
const MOST_NAMES = 40; // that are shown at once
const MOST_THUMBS = 12; // small pictures of a strip
const MOST_THUMB = 4 * 2 ** 20; // bytes of one of them
const MOST_KEPT = 80; // contents that a name keeps
const PAUSE = 15_000; // milliseconds between two readings while it runs

/** @type {import("./experiment.js").Tab} */
export function showMedia(page) {
  const board = new MediaBoard(() => [page.id], page.signal);
  const again = make("button", { type: "button", onclick: () => read() }, "Read again");
  fill(page.place, make("div", { class: "bar" }, board.summary, again), board.element);
  const read = () => {
    board.read().catch((error) => page.feed.onReturn(error, read, page.signal));
  };
  page.feed.onPulse(() => {
    if (!hasEnded(page.view.state) && board.isOld) read();
  }, page.signal);
  read();
  return { update: read };
}

/** The media of one or several experiments, side by side. */
export class MediaBoard {
  /** @param {() => string[]} ids @param {AbortSignal} signal @param {(series: NamedMedia) => boolean} [choose] what is shown @param {number | null} [first] the step that is shown first; null: the last one */
  constructor(ids, signal, choose = () => true, first = null) {
    this.ids = ids;
    this.signal = signal;
    this.choose = choose;
    this.first = first;
    this.most = MOST_NAMES;
    /** @type {Map<string, MediaPanel>} */
    this.panels = new Map();
    this.summary = make("p", { class: "soft", role: "status" });
    this.problem = make("div");
    this.list = make("div", { class: "media-list" });
    this.more = make("button", { type: "button", hidden: true, onclick: () => this.showMore() }, "Show more names");
    this.element = make("div", { class: "media" }, this.problem, this.list, this.more);
    this.last = Number.NEGATIVE_INFINITY; // when it was read, in milliseconds
    /** @type {NamedMedia[]} */
    this.named = [];
  }

  /** True: what is shown was read so long ago that it is worth a look. */
  get isOld() {
    return performance.now() - this.last >= PAUSE;
  }

  async read() {
    this.last = performance.now();
    try {
      const ids = this.ids();
      const views = [];
      for (const id of ids) views.push(await readMedia(id, this.signal));
      this.named = joinMedia(views).filter(this.choose);
      fill(this.problem);
      this.show();
      const leftOut = views.reduce((sum, view) => sum + view.left_out, 0);
      const notes = [leftOut && `${countNoun(leftOut, "file")} below media/ left out, because the name is not NAME/STEP.png or the like`, views.some((view) => view.more) && "there are more files than the server lists"].filter(Boolean);
      const words = this.named.length ? countNoun(this.named.length, "name") : "No media so far. A job shows pictures, sound, tables and texts here with riseml.report_image(name, step, image) and its like, or as files media/NAME/STEP.png in OUTPUT_DIR.";
      setText(this.summary, [words, ...notes].join("; "));
    } catch (error) {
      if (this.signal.aborted) return;
      fill(this.problem, makeProblem(error));
      throw error;
    }
  }

  showMore() {
    this.most += MOST_NAMES;
    this.show();
  }

  show() {
    const shown = this.named.slice(0, this.most);
    for (const named of shown) {
      const key = JSON.stringify([named.kind, named.name]);
      const known = this.panels.get(key);
      const panel = known ?? new MediaPanel(named, this.signal, this.first);
      if (!known) this.panels.set(key, panel);
      panel.update(named.runs);
    }
    const elements = shown.map((named) => /** @type {MediaPanel} */ (this.panels.get(JSON.stringify([named.kind, named.name]))).element);
    if (elements.some((element, at) => this.list.children[at] !== element) || this.list.children.length !== elements.length) fill(this.list, elements);
    this.more.hidden = this.named.length <= this.most;
  }
}

/** @param {string} id @param {AbortSignal} signal @returns {Promise<import("../wire.js").MediaView>} */
async function readMedia(id, signal) {
  return (await getResponse(`/experiments/${encodeURIComponent(id)}/media`, {}, signal)).json();
}

/** Return the media of several experiments by name, in the order of the first that has one. @param {import("../wire.js").MediaView[]} views @returns {NamedMedia[]} */
export function joinMedia(views) {
  /** @type {Map<string, NamedMedia>} */
  const found = new Map();
  for (const { id, media } of views) {
    for (const { name, kind, items } of media) {
      const key = JSON.stringify([kind, name]);
      const named = found.get(key) ?? { name, kind, runs: [] };
      named.runs.push({ id, items });
      found.set(key, named);
    }
  }
  return [...found.values()];
}

/** Return the steps of which at least one experiment has something. @param {MediaRun[]} runs @returns {number[]} */
export function listSteps(runs) {
  return [...new Set(runs.flatMap(({ items }) => items.map(({ step }) => step)))].sort((one, other) => one - other);
}

/** Return what an experiment has at a step, or had last before it. @param {MediaItem[]} items in the order of their steps @param {number} step @returns {MediaItem | null} */
export function findItem(items, step) {
  return items.filter((item) => item.step <= step).at(-1) ?? null;
}

/** Return places of a list, spread evenly, with its first and last one. @param {number} count @param {number} most @returns {number[]} */
export function spreadPlaces(count, most) {
  if (count <= most) return Array.from({ length: count }, (_, at) => at);
  return Array.from({ length: most }, (_, at) => Math.round((at * (count - 1)) / (most - 1)));
}

/** One name: its slider, its strip, and what each experiment has at the step. */
class MediaPanel {
  /** @param {NamedMedia} named @param {AbortSignal} signal @param {number | null} first */
  constructor({ name, kind }, signal, first) {
    this.name = showName(name);
    this.kind = kind;
    this.signal = signal;
    /** @type {MediaRun[]} */
    this.runs = [];
    /** @type {number[]} */
    this.steps = [];
    this.step = -1; // that is shown
    this.first = first;
    this.follows = first === null; // True: the last step is shown, also when a further one comes
    this.isNear = false; // True: it is on the screen, or was; what is far below reads nothing
    /** @type {Map<string, Promise<HTMLElement>>} contents by experiment and file */
    this.contents = new Map();
    this.words = make("output", { class: "soft" });
    this.slider = make("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": `Step of ${this.name}`, oninput: () => this.choose(Number(this.slider.value)) });
    this.strip = make("div", { class: "strip", role: "group", "aria-label": `Steps of ${this.name}` });
    this.row = make("div", { class: "media-row" });
    this.element = make("section", { class: "panel", "aria-label": `Media ${this.name}, ${kind}` }, make("div", { class: "line" }, make("h2", {}, this.name), make("label", { class: "stepper" }, this.slider, this.words)), this.row, this.strip);
    this.drawSoon = makeCoalesced(() => this.draw());
    const watcher = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      this.isNear = true;
      watcher.disconnect();
      this.drawSoon();
    }, { rootMargin: "300px" });
    watcher.observe(this.element);
    signal.addEventListener("abort", () => watcher.disconnect());
  }

  /** @param {MediaRun[]} runs */
  update(runs) {
    const former = JSON.stringify(this.runs);
    this.runs = runs;
    if (JSON.stringify(runs) === former) return;
    this.steps = listSteps(runs);
    const wanted = this.step < 0 && this.first !== null ? this.first : this.step;
    const at = this.steps.filter((step) => step <= wanted).length - 1; // the step, or the last one before it
    this.slider.max = String(this.steps.length - 1);
    this.show(this.follows || at < 0 ? this.steps.length - 1 : at);
  }

  /** @param {number} at place among the steps */
  choose(at) {
    this.follows = at === this.steps.length - 1;
    this.show(at);
  }

  /** @param {number} at */
  show(at) {
    this.step = this.steps[at];
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", `step ${formatNumber(this.step)}`);
    this.slider.hidden = this.steps.length < 2;
    setText(this.words, `step ${formatNumber(this.step)}${this.steps.length > 1 ? ` (${at + 1} of ${this.steps.length})` : ""}`);
    this.drawSoon();
  }

  async draw() {
    if (!this.isNear || this.signal.aborted) return;
    const { step } = this;
    const figures = await Promise.all(this.runs.map((run) => this.makeFigure(run, step)));
    if (this.signal.aborted) return;
    if (step === this.step) fill(this.row, figures);
    await this.drawStrip();
  }

  /** @param {MediaRun} run @param {number} step */
  async makeFigure({ id, items }, step) {
    const item = findItem(items, step);
    const place = item && item.step !== step ? `, step ${formatNumber(item.step)}` : "";
    const caption = this.runs.length > 1 ? make("figcaption", { class: "soft" }, makeLink(id), place) : null;
    const content = item ? await this.load(id, item).catch(makeProblem) : make("p", { class: "soft" }, `Nothing at step ${formatNumber(step)} so far.`);
    return make("figure", {}, caption, content);
  }

  /** @param {string} id @param {MediaItem} item @returns {Promise<HTMLElement>} */
  load(id, item) {
    const key = JSON.stringify([id, item.path, item.etag]);
    const known = this.contents.get(key);
    if (known) return known;
    const content = readContent({ id, item, kind: this.kind, name: this.name, signal: this.signal });
    this.contents.set(key, content);
    content.catch(() => this.contents.delete(key)); // the next look reads it again
    if (this.contents.size > MOST_KEPT) this.contents.delete(/** @type {string} */ (this.contents.keys().next().value));
    return content;
  }

  /** Draw small pictures of some steps; each goes to its step. */
  async drawStrip() {
    if (this.kind !== "picture" || this.runs.length !== 1 || this.steps.length < 2) return fill(this.strip);
    const [{ id, items }] = this.runs;
    const places = spreadPlaces(items.length, MOST_THUMBS).filter((at) => items[at].size <= MOST_THUMB);
    const buttons = await Promise.all(places.map(async (at) => {
      const item = items[at];
      const label = `Step ${formatNumber(item.step)}`;
      const picture = await this.load(id, item).then((found) => found.cloneNode(true), () => null);
      const isHere = item.step === this.step;
      return make("button", { type: "button", class: "thumb", "aria-label": label, "aria-pressed": String(isHere), onclick: () => this.choose(this.steps.indexOf(item.step)) }, picture, make("span", { class: "soft" }, formatNumber(item.step)));
    }));
    if (!this.signal.aborted) fill(this.strip, buttons);
  }
}

/** @typedef {{id: string, item: MediaItem, kind: MediaSeries["kind"], name: string, signal: AbortSignal}} Wanted */

/** @param {Wanted} wanted @returns {Promise<HTMLElement>} the element that shows it */
async function readContent(wanted) {
  const { id, item, kind, name } = wanted;
  const isText = kind === "text" || kind === "table";
  if (item.size > MOST[kind] && !isText) return makeLarge(id, item);
  const bytes = await readBytes(wanted, MOST[kind]);
  const ending = item.path.slice(item.path.lastIndexOf(".") + 1).toLowerCase();
  const type = TYPES.get(ending);
  const label = `${name} of ${id}, step ${item.step}`;
  if (isText || !type) return makeTextual(bytes, ending, item, label);
  if (kind === "picture") return makePicture(await readAsUrl(new Blob([bytes], { type })), label);
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  wanted.signal.addEventListener("abort", () => URL.revokeObjectURL(address));
  return make(kind === "sound" ? "audio" : "video", { src: address, controls: true, preload: "metadata", "aria-label": label });
}

/** @param {string} address @param {string} label */
function makePicture(address, label) {
  const picture = make("img", { class: "picture", src: address, alt: label });
  picture.addEventListener("error", () => picture.replaceWith(make("p", {}, "This is no picture, or a damaged one.")));
  return picture;
}

/** @param {Uint8Array<ArrayBuffer>} bytes @param {string} ending @param {MediaItem} item @param {string} label */
async function makeTextual(bytes, ending, item, label) {
  const text = decode(bytes, bytes.length < item.size);
  if (text === null) return make("p", {}, `This is no text (${formatBytes(item.size)}).`);
  const table = readReportedTable(text, ending, bytes.length < item.size);
  if (table) return makeReportedTable(table, label);
  const prose = ending === "md" && bytes.length === item.size ? await readMarkdown(text) : null;
  if (prose) return prose;
  const note = bytes.length < item.size && make("p", { class: "soft" }, `The first ${formatBytes(bytes.length)} of ${formatBytes(item.size)}.`);
  return make("div", {}, note, text ? makeCode(text, label) : make("p", { class: "empty" }, "This file is empty."));
}

/** @param {string} id @param {MediaItem} item */
function makeLarge(id, item) {
  const path = `output://${id}/media/${item.path}`;
  const quoted = `'${stripControls(path).replaceAll("'", "'\\''")}'`;
  return make("p", { class: "soft" }, `This file has ${formatBytes(item.size)}. In a terminal: `, make("code", {}, `riseml cp ${quoted} .`));
}

/** @param {Wanted} wanted @param {number} most bytes @returns {Promise<Uint8Array<ArrayBuffer>>} its content, or the first part of it */
async function readBytes({ id, item, signal }, most) {
  const part = item.size > most ? { Range: `bytes=0-${most - 1}` } : undefined;
  const response = await getResponse(`/experiments/${encodeURIComponent(id)}/media/content`, { path: item.path }, signal, part);
  return new Uint8Array(await response.arrayBuffer());
}
