// @ts-check
/** The address of the visible view. Views write a filter or a line into the address through this module. */

let shown = ""; // path and query

/** @returns {boolean} whether the address is that of the visible view */
export function isShown() {
  return shown === location.pathname + location.search;
}

/** Record that the visible view is that of the present address. */
export function noteShown() {
  shown = location.pathname + location.search;
}

/** Write the state of the visible view into the address. @param {string} address */
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
