// @ts-check
/**
 * Markdown as elements. The server reads it and answers with pieces; this module makes elements of a fixed list, and all
 * text becomes text nodes. HTML in Markdown is text, links lead to web addresses alone, and nothing is loaded.
 */

import { post } from "./api.js";
import { make } from "./dom.js";

/** @import { ReportPiece } from "../wire.js" */

const TAGS = /** @type {(keyof HTMLElementTagNameMap)[]} */ (["p", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"]);
const WEB = /^(https?:\/\/|\/(?![/\\])|#)/i;
const MOST_TEXT = 50_000; // characters that the server reads

/** @param {ReportPiece[]} pieces @returns {HTMLElement} */
export function drawPieces(pieces) {
  const root = make("div", { class: "prose" });
  /** @type {HTMLElement[]} */
  const open = [root];
  for (const { kind, tag, text, href } of pieces) {
    const place = open[open.length - 1];
    if (kind === "open") {
      const element = makeElement(tag, href);
      if (tag === "table") place.append(make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, element));
      else place.append(element);
      open.push(element);
    } else if (kind === "close") {
      if (open.length > 1) open.pop();
    } else if (kind === "code") place.append(make("code", {}, text));
    else if (kind === "fence") place.append(make("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "Code" }, text));
    else if (kind === "break") place.append(make("br"));
    else if (kind === "rule") place.append(make("hr"));
    else place.append(text);
  }
  return root;
}

/** @param {string} tag @param {string} href @returns {HTMLElement} */
function makeElement(tag, href) {
  const name = TAGS.find((one) => one === tag) ?? "span";
  if (name !== "a") return make(name);
  const isElsewhere = /^https?:/i.test(href);
  return make("a", { href: WEB.test(href) ? href : null, rel: isElsewhere ? "noopener noreferrer" : null, target: isElsewhere ? "_blank" : null });
}

/** Return a text as Markdown; null: it is too long for that. @param {string} text @returns {Promise<HTMLElement | null>} */
export async function readMarkdown(text) {
  if (text.length > MOST_TEXT) return null;
  const { blocks } = await post("/reports/preview", { text });
  const texts = blocks.filter(({ kind }) => kind === "text"); // charts are for reports
  return make("div", {}, texts.map(({ pieces }) => drawPieces(pieces)));
}
