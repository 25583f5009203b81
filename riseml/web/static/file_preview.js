// @ts-check
/**
 * One file: a picture, a table, or text. Only its name decides which; no content of a file is ever parsed as HTML. A
 * picture, SVG included, is shown by an element that runs no script and loads nothing, from a `data:` address, which is
 * not a page of this origin.
 */

import { showName, stripControls } from "./ansi.js";
import { getResponse } from "./api.js";
import { parseTable } from "./csv.js";
import { fill, make } from "./dom.js";
import { formatBytes, formatNumber } from "./format.js";
import { makeProblem, makeTable } from "./parts.js";

const PICTURES = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["bmp", "image/bmp"],
  ["svg", "image/svg+xml"],
]);
const TABLES = new Set(["csv", "tsv"]);
const MOST_PICTURE = 16 * 2 ** 20; // bytes
const MOST_TEXT = 256 * 2 ** 10; // the most bytes of a text that are shown
const MOST_DOWNLOAD = 256 * 2 ** 20; // bytes; a browser holds them in memory
const MOST_ROWS = 500;
const MOST_COLUMNS = 60;
const LONGEST_CELL = 500; // characters
const PROOF = 33; // bytes after a content: whether it is complete, and its SHA-256

/**
 * @typedef {object} ShownFile
 * @property {string} id of the experiment
 * @property {string} path
 * @property {import("../wire.js").FileView} file
 * @property {AbortSignal} signal
 */

/**
 * Show a file in a place.
 * @param {HTMLElement} place
 * @param {ShownFile} shown
 */
export async function showFile(place, shown) {
  const content = make("div", {}, make("p", { class: "soft" }, "The server reads it."));
  const name = shown.path.slice(shown.path.lastIndexOf("/") + 1);
  fill(place, make("div", { class: "line" }, make("h2", {}, showName(name)), makeDownload(shown, name)), content);
  try {
    const found = await preview(shown, name.slice(name.lastIndexOf(".") + 1).toLowerCase());
    if (!shown.signal.aborted) fill(content, found);
  } catch (error) {
    if (!shown.signal.aborted) fill(content, makeProblem(error));
  }
}

/** @param {ShownFile} shown @param {string} ending @returns {Promise<import("./dom.js").Child[]>} */
async function preview(shown, ending) {
  const { file } = shown;
  if (file.kind !== "file") return [make("p", {}, "This is not a file.")];
  const type = PICTURES.get(ending);
  if (type && file.size <= MOST_PICTURE) return [await makePicture(shown, type)];
  const { bytes, total } = await readPart(shown, 0, MOST_TEXT);
  const text = decode(bytes, bytes.length < total);
  if (text === null) return [make("p", {}, `This is no text (${formatBytes(total)}).`), makeHint(shown)];
  if (TABLES.has(ending)) return makeRows(text, bytes.length < total);
  return makeText(shown, text, { size: bytes.length, total });
}

/** @param {ShownFile} shown @param {string} type */
async function makePicture(shown, type) {
  const bytes = await readWhole(shown, MOST_PICTURE);
  const url = await readAsUrl(new Blob([bytes], { type }));
  const picture = make("img", { class: "picture", src: url, alt: `Picture ${stripControls(shown.path)}` });
  picture.addEventListener("error", () => picture.replaceWith(make("p", {}, "This is no picture, or a damaged one.")));
  return picture;
}

/** @param {Blob} blob @returns {Promise<string>} */
export function readAsUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** @param {string} text @param {boolean} isPart */
function makeRows(text, isPart) {
  const { rows, isCut } = parseTable(text, MOST_ROWS + 1);
  if (isPart && !isCut) rows.pop(); // its end is missing
  if (!rows.length) return [make("p", { class: "empty" }, "This table is empty.")];
  const width = Math.min(MOST_COLUMNS, Math.max(...rows.map((row) => row.length)));
  const cut = (/** @type {string[]} */ row) => Array.from({ length: width }, (_, at) => cutCell(row[at] ?? ""));
  const [heads, ...body] = rows.map(cut);
  const isNumber = (/** @type {number} */ at) => body.length > 0 && body.every((row) => row[at] === "" || !Number.isNaN(Number(row[at])));
  const numbers = heads.map((_, at) => at).filter(isNumber);
  const note = isPart || isCut ? make("p", { class: "soft" }, `The first ${formatNumber(body.length)} rows. \`riseml cat\` has all.`) : null;
  const titles = heads.map((head, at) => head || `Column ${at + 1}`);
  return [note, make("div", { class: "cells" }, makeTable(titles, body, { caption: "Content", numbers }))];
}

/** @param {string} text */
function cutCell(text) {
  const shown = stripControls(text);
  return shown.length > LONGEST_CELL ? `${shown.slice(0, LONGEST_CELL)} …` : shown;
}

/** @param {ShownFile} shown @param {string} text @param {{size: number, total: number}} sizes */
function makeText(shown, text, { size, total }) {
  const code = makeCode(text);
  if (size === total) return [total ? code : make("p", { class: "empty" }, "This file is empty.")];
  const note = make("div", { class: "soft" }, `The first ${formatBytes(size)} of ${formatBytes(total)}.`);
  const end = make("button", { type: "button", onclick: () => showEnd() }, "Show its end");
  const showEnd = async () => {
    end.disabled = true;
    try {
      const now = await readPart(shown, 0, 0); // a job that runs may have written more
      const found = await readPart(shown, Math.max(0, now.total - MOST_TEXT), MOST_TEXT);
      code.textContent = stripLines(new TextDecoder().decode(found.bytes));
      note.textContent = `Up to ${formatBytes(found.bytes.length)} from its end of ${formatBytes(found.total)}.`;
      code.scrollTop = code.scrollHeight;
    } catch (error) {
      end.disabled = false;
      fill(note, makeProblem(error));
    }
  };
  return [make("div", { class: "line" }, note, end), code];
}

/** @param {string} text @param {string} [label] */
export function makeCode(text, label = "Content") {
  return make("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label }, stripLines(text));
}

/** @param {string} text */
function stripLines(text) {
  return text.split("\n").map(stripControls).join("\n");
}

/** @param {Uint8Array} bytes @param {boolean} isPart @returns {string | null} null: it is not text */
export function decode(bytes, isPart) {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isPart });
  } catch {
    return null;
  }
}

/** @param {ShownFile} shown */
function makeHint(shown) {
  const path = `output://${shown.id}/${shown.path}`;
  const quoted = `'${stripControls(path).replaceAll("'", "'\\''")}'`;
  return make("p", { class: "soft" }, "In a terminal: ", make("code", {}, `riseml cp ${quoted} .`));
}

/** @param {ShownFile} shown @param {string} name */
function makeDownload(shown, name) {
  if (shown.file.kind !== "file") return null;
  if (shown.file.size > MOST_DOWNLOAD) return makeHint(shown);
  const button = make("button", { type: "button", onclick: () => save() }, `Download, ${formatBytes(shown.file.size)}`);
  const save = async () => {
    button.disabled = true;
    try {
      const url = URL.createObjectURL(new Blob([await readWhole(shown, MOST_DOWNLOAD)], { type: "application/octet-stream" }));
      const link = make("a", { href: url, download: name });
      button.after(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      button.after(makeProblem(error));
    }
    button.disabled = false;
  };
  return button;
}

/** Return a whole file; throw an error if it changed meanwhile. @param {ShownFile} shown @param {number} most bytes */
async function readWhole(shown, most) {
  const { bytes, proof } = await readPart(shown, 0, most);
  const expected = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const isWhole = proof[0] === 0x30 && proof.length === PROOF && expected.every((byte, at) => byte === proof[at + 1]);
  if (!isWhole) throw new Error("The file changed while the server read it: read it again.");
  return bytes;
}

/**
 * Read a part of a file; request no more from the server.
 * @param {ShownFile} shown
 * @param {number} start
 * @param {number} most
 * @returns {Promise<{bytes: Uint8Array<ArrayBuffer>, proof: Uint8Array, total: number}>} `proof` if it is all of the file
 */
async function readPart({ id, path, signal }, start, most) {
  const control = new AbortController();
  signal.addEventListener("abort", () => control.abort());
  const response = await getResponse("/files/content", { root: "output", of: id, path, start }, control.signal);
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const total = Number(response.headers.get("X-Riseml-Size"));
  const size = Math.max(0, Math.min(most, total - start));
  const bytes = new Uint8Array(size === total ? size + PROOF : size);
  let filled = 0;
  while (filled < bytes.length) {
    const { done, value } = await reader.read();
    if (done) throw new Error("The server broke off in the middle of the file.");
    const piece = value.subarray(0, bytes.length - filled);
    bytes.set(piece, filled);
    filled += piece.length;
  }
  control.abort();
  return { bytes: bytes.subarray(0, size), proof: bytes.slice(size), total };
}
