// @ts-check
/** The colours of a chart: those of the page, as its style sheet has them now. */

const COLOURS = 8; // in style.css
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]]; // of lines beyond the colours

/** @typedef {{lines: string[], text: string, soft: string, grid: string, back: string, font: string}} Palette */

/** @returns {Palette} */
export function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    lines: Array.from({ length: COLOURS }, (_, at) => read(`--c${at}`)),
    text: read("--text"),
    soft: read("--soft"),
    grid: read("--line"),
    back: read("--back"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

/** @param {number} place of a line @returns {number} of its colour */
export function pickColour(place) {
  return place % COLOURS;
}

/** @param {number} place of a line @returns {number[]} lengths of strokes and gaps; empty: no dashes */
export function pickDash(place) {
  return DASHES[Math.floor(place / COLOURS) % DASHES.length];
}
