// @ts-check
/** Terminal colours in lines of output. All other escape sequences are left out; text stays text. */

// ECMA-48: CSI; OSC, DCS and their like up to their end; all others. Of the one-character forms (such as U+009B) only
// that character is left out, since wrongly decoded text contains it, too.
const SEQUENCE = /\x1b\[(?:([0-9;:]*)(m)|[0-?]*[ -/]*[@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b(?:[ -/]*[0-~])?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** @typedef {{colour: string, isBold: boolean, isFaint: boolean, isUnderlined: boolean}} Style */

/** @param {string} text @returns {string} */
export function stripControls(text) {
  return text.replace(SEQUENCE, "");
}

/**
 * Return a line of output as a terminal would leave it: of a progress bar, which rewrites its line, the last state.
 * @param {string} text
 */
export function takeLastState(text) {
  if (!text.includes("\r")) return text;
  return text.split("\r").reverse().find((state) => stripControls(state).trim()) ?? "";
}

/** Return a name in which characters that change its appearance are visible. @param {string} name @returns {string} */
export function showName(name) {
  return name.replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Add a line to an element, each stretch of one style as a span.
 * @param {Element} element
 * @param {string} text
 */
export function appendColoured(element, text) {
  /** @type {Style} */
  let style = { colour: "", isBold: false, isFaint: false, isUnderlined: false };
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    appendText(element, text.slice(from, found.index), style);
    from = found.index + found[0].length;
    if (found[2] === "m") style = changeStyle(style, found[1]);
  }
  appendText(element, text.slice(from), style);
}

/** @param {Element} element @param {string} text @param {Style} style */
function appendText(element, text, { colour, isBold, isFaint, isUnderlined }) {
  if (!text) return;
  const names = [colour && `ansi-${colour}`, isBold && "ansi-bold", isFaint && "ansi-faint", isUnderlined && "ansi-underlined"];
  const shown = names.filter(Boolean).join(" ");
  if (!shown) return element.append(text);
  const span = document.createElement("span");
  span.className = shown;
  span.textContent = text;
  element.append(span);
}

/** @param {Style} style @param {string} codes @returns {Style} */
function changeStyle(style, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at];
    if (code === 38 || code === 48 || code === 58) at += numbers[at + 1] === 5 ? 2 : 4; // skip the parameters of 256 colours and more
    else style = applyCode(style, code);
  }
  return style;
}

/** @param {Style} style @param {number} code @returns {Style} */
function applyCode(style, code) {
  if (code === 0) return { colour: "", isBold: false, isFaint: false, isUnderlined: false };
  if (code === 1) return { ...style, isBold: true };
  if (code === 2) return { ...style, isFaint: true };
  if (code === 22) return { ...style, isBold: false, isFaint: false };
  if (code === 4) return { ...style, isUnderlined: true };
  if (code === 24) return { ...style, isUnderlined: false };
  if (code === 39) return { ...style, colour: "" };
  if (code >= 30 && code <= 37) return { ...style, colour: NAMES[code - 30] };
  if (code >= 90 && code <= 97) return { ...style, colour: NAMES[code - 90] };
  return style;
}
