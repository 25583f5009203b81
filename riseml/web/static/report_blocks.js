// @ts-check
/** The parts of a report: text, and live charts, tables and media of its runs. */

import { get } from "./api.js";
import { ChartPanel } from "./chart_panel.js";
import { fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { drawPieces } from "./markdown.js";
import { MediaBoard } from "./media.js";
import { makeLink, makeProblem, makeTable, makeText } from "./parts.js";
import { topOf } from "./rights.js";
import { makeSeries } from "./set.js";

/** @import { ReportBlock } from "../wire.js" */

/** @typedef {{element: HTMLElement, refresh: () => Promise<void>, runs: string[]}} LiveBlock */

const PAUSE = 3000; // milliseconds between two readings at least
const MOST_CURVES = 200; // of one chart

/** Draws the blocks of a report, and keeps those that stay when its text changes. */
export class ReportBody {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** @type {Map<string, LiveBlock>} */
    this.known = new Map();
    this.element = make("article", { class: "report" });
  }

  /** @param {ReportBlock[]} blocks */
  show(blocks) {
    /** @type {Map<string, LiveBlock>} */
    const shown = new Map();
    const elements = blocks.map((block) => {
      if (block.kind === "text") return drawPieces(block.pieces);
      if (block.kind === "problem") return make("div", { class: "problem", role: "note" }, make("p", {}, makeText(`Line ${block.line}: ${block.problem}`)));
      const { line, ...content } = block; // a block that has moved is the same
      let key = JSON.stringify(content);
      while (shown.has(key)) key += " "; // the same block again
      const live = this.known.get(key) ?? this.makeBlock(block);
      shown.set(key, live);
      return live.element;
    });
    this.known = shown;
    fill(this.element, elements);
  }

  /** @param {ReportBlock} block @returns {LiveBlock} */
  makeBlock(block) {
    const place = make("div");
    const problem = make("div");
    const read = { chart: () => this.makeChart(block, place), table: () => this.makeTable(block, place), media: () => this.makeMedia(block, place) }[/** @type {"chart" | "table" | "media"} */ (block.kind)]();
    const element = make("section", { class: "block", "aria-label": block.title || `${block.kind} ${block.metric || block.name || "of runs"}` }, block.title && make("h3", {}, block.title), place, problem, describeAbsent(block.absent));
    const refresh = async () => {
      try {
        await read();
        fill(problem);
      } catch (error) {
        if (this.signal.aborted) return;
        fill(problem, makeProblem(error));
        throw error;
      }
    };
    if (block.runs.length) refresh().catch((error) => console.debug(error));
    return { element, refresh, runs: block.runs };
  }

  /** @param {ReportBlock} block @param {HTMLElement} place */
  makeChart({ metric, runs }, place) {
    const panel = new ChartPanel(metric, { kind: "report" });
    const empty = make("p", { class: "soft" }, `No run has ${metric} so far.`);
    return async () => {
      const series = [];
      for (const run of runs) {
        const { curves } = await get(`/experiments/${encodeURIComponent(run)}/curves`, { metric }, this.signal);
        series.push(...curves.map((curve) => makeSeries(curve, false)));
      }
      if (!series.length) return fill(place, empty);
      if (!panel.element.isConnected) fill(place, panel.element);
      panel.show(series.slice(0, MOST_CURVES));
    };
  }

  /** @param {ReportBlock} block @param {HTMLElement} place */
  makeTable({ runs, columns, title }, place) {
    return async () => {
      const table = await get("/table", { of: runs, column: columns, archived: true }, this.signal);
      const numbers = columns.map((_, at) => at + 1).filter((at) => table.rows.every(({ cells }) => cells[at - 1] === null || typeof cells[at - 1] === "number"));
      const rows = table.rows.map(({ id, cells }) => [makeLink(id), ...cells.map((cell) => (typeof cell === "number" ? formatNumber(cell) : (cell ?? "")))]);
      const notes = table.notes.map((note) => make("p", { class: "soft" }, makeText(note)));
      fill(place, makeTable(["ID", ...table.columns], rows, { caption: title || "Runs", numbers }), notes);
    };
  }

  /** @param {ReportBlock} block @param {HTMLElement} place */
  makeMedia({ runs, name, step }, place) {
    const board = new MediaBoard(() => runs, this.signal, (named) => named.name === name, step);
    const empty = make("p", { class: "soft" }, `No run has ${name} so far.`);
    return async () => {
      await board.read();
      fill(place, board.named.length ? board.element : empty);
    };
  }

  /** Read again what the changes concern. @param {import("./feed.js").Feed} feed @param {AbortSignal} signal */
  follow(feed, signal) {
    /** @type {Set<LiveBlock>} */
    const waiting = new Set();
    const readSoon = feed.makeReading(async () => {
      const chosen = [...waiting].filter(({ element }) => element.isConnected);
      waiting.clear();
      for (const block of chosen) await block.refresh();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }, signal);
    feed.listen(({ changed, grown, reset }) => {
      const ids = new Set([...changed, ...grown].flatMap((id) => [id, topOf(id)]));
      for (const block of this.known.values()) if (reset || block.runs.some((run) => ids.has(run))) waiting.add(block);
      if (waiting.size) readSoon();
    }, signal);
  }
}

/** @param {number} count @returns {HTMLElement | null} the sentence about runs that the reader does not see */
function describeAbsent(count) {
  if (!count) return null;
  return make("p", { class: "soft" }, `${count === 1 ? "1 run of this part is" : `${count} runs of this part are`} not there, or not shared with you.`);
}
