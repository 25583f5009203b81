// @ts-check
/** The address of the view in sight. A view that writes a filter or a line into it says so here. */

let shown = ""; // path and query

/** @returns {boolean} whether the address is that of the view in sight */
export function isShown() {
  return shown === location.pathname + location.search;
}

/** The address is that of the view in sight from now on. */
export function noteShown() {
  shown = location.pathname + location.search;
}

/** Write what the view in sight shows into the address. @param {string} address */
export function rewriteAddress(address) {
  history.replaceState(null, "", address);
  noteShown();
}

/** @returns {string[] | null} the parts of the address; null: it cannot be read */
export function readParts() {
  try {
    return location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return null;
  }
}
