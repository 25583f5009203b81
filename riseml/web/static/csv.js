// @ts-check
/** Tables as text: rows of cells between commas, semicolons or tabs, with quotes as in RFC 4180. */

const SEPARATORS = [",", "\t", ";"];

/**
 * Return the first rows of a table.
 * @param {string} text
 * @param {number} mostRows
 * @returns {{rows: string[][], isCut: boolean}} `isCut`: there are more rows
 */
export function parseTable(text, mostRows) {
  const separator = findSeparator(text);
  /** @type {string[][]} */
  const rows = [];
  let row = [];
  let at = text.startsWith("\ufeff") ? 1 : 0;
  while (at < text.length) {
    if (rows.length === mostRows) return { rows, isCut: true };
    const cell = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at, separator);
    row.push(cell.value);
    at = cell.end;
    if (text[at] === separator) {
      at += 1;
      if (at < text.length) continue;
      row.push("");
    }
    if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    at += 1;
    rows.push(row);
    row = [];
  }
  return { rows, isCut: false };
}

/** @param {string} text @returns {string} the separator that the first line has most often */
function findSeparator(text) {
  const line = text.slice(0, Math.max(0, text.search(/[\r\n]|$/)));
  const count = (/** @type {string} */ one) => line.split(one).length;
  return SEPARATORS.reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** @param {string} text @param {number} start @returns {{value: string, end: number}} */
function readQuoted(text, start) {
  let value = "";
  let at = start + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end < 0) return { value: value + text.slice(at), end: text.length };
    value += text.slice(at, end);
    if (text[end + 1] !== '"') return { value, end: skipToEnd(text, end + 1) };
    value += '"';
    at = end + 2;
  }
}

/** Skip text after a closing quote, where none is allowed. @param {string} text @param {number} start */
function skipToEnd(text, start) {
  let at = start;
  while (at < text.length && !SEPARATORS.includes(text[at]) && text[at] !== "\n" && text[at] !== "\r") at += 1;
  return at;
}

/** @param {string} text @param {number} start @param {string} separator @returns {{value: string, end: number}} */
function readPlain(text, start, separator) {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { value: text.slice(start, end), end };
}
