// @ts-check
/** Texts that are numbers: as `riseml.analysis.numbers` reads them. `01` is a text, and 2.10 is not 2.1. */

const NUMBER = /^[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$/;
const LONGEST = 40; // characters

/** @param {string} text @returns {number} NaN: it is not a number */
export function readNumber(text) {
  return text.length <= LONGEST && NUMBER.test(text) ? Number(text) : Number.NaN;
}

/**
 * Return whether two texts are one number, with the same digits behind the point: 0.001 and 1e-3, and not 2.1 and 2.10.
 * @param {string} one
 * @param {string} other
 */
export function areEqualNumbers(one, other) {
  const number = readNumber(one);
  return number === readNumber(other) && Math.abs(number) <= Number.MAX_SAFE_INTEGER && countDecimals(one) === countDecimals(other);
}

/** @param {string[]} texts @returns {boolean} all of them are numbers, and no two are one number in other digits */
export function areNumbers(texts) {
  /** @type {Map<number, string>} */
  const known = new Map();
  return texts.every((text) => {
    const number = readNumber(text);
    const former = known.get(number) ?? text;
    known.set(number, former);
    return Number.isFinite(number) && (former === text || areEqualNumbers(former, text));
  });
}

/** @param {string} text of a number @returns {number} digits behind the point, when it is written without an exponent */
function countDecimals(text) {
  const [digits, exponent] = text.toLowerCase().split("e");
  return Math.max(0, (digits.split(".")[1] ?? "").length - Number(exponent ?? 0));
}
