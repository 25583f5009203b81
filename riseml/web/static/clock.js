// @ts-check
/** The clock of the server, which says when something was: that of a browser on another machine may be wrong. */

const LEAST = 3000; // milliseconds of difference that count: answers say whole seconds, and come a little late
let ahead = 0; // milliseconds by which the server's clock is ahead of the browser's

/** @returns {number} milliseconds since 1970, as the server counts them */
export function readClock() {
  return Date.now() + ahead;
}

/** @param {string | null} date that an answer of the server has in its headers */
export function noteDate(date) {
  const found = Date.parse(date ?? "") - Date.now();
  if (Number.isNaN(found) || Math.abs(found - ahead) < LEAST) return;
  ahead = Math.abs(found) < LEAST ? 0 : found;
}
