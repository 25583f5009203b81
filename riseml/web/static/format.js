// @ts-check
/** Values as people read them. */

import { readClock } from "./clock.js";

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** @param {number} seconds @returns {string} */
export function formatSpan(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  for (const [at, [size, unit]] of UNITS.entries()) {
    if (whole < Number(size) && size !== 1) continue;
    const count = Math.floor(whole / Number(size));
    const [below, name] = UNITS[at + 1] ?? [0, ""];
    const rest = below ? Math.floor((whole % Number(size)) / Number(below)) : 0;
    return rest && count < 10 ? `${count} ${unit} ${rest} ${name}` : `${count} ${unit}`;
  }
  return "0 s";
}

/** @param {string} time RFC 3339 @returns {string} */
export function formatAge(time) {
  const seconds = (readClock() - Date.parse(time)) / 1000;
  return seconds < 2 ? "now" : `${formatSpan(seconds).split(" ").slice(0, 2).join(" ")} ago`;
}

/** @param {string} time RFC 3339 @returns {string} the local time, with its date if it is not today's */
export function formatMoment(time) {
  const at = new Date(time);
  const clock = at.toLocaleTimeString(undefined, { hour12: false });
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock : `${at.toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" })} ${clock}`;
}

/** @param {number} seconds since 1970, which a job may have chosen freely @returns {string | null} RFC 3339; null: no calendar has it */
export function toTime(seconds) {
  const at = new Date(seconds * 1000);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** @param {string} time @returns {string} hours, minutes, seconds and milliseconds, local */
export function formatClock(time) {
  const at = new Date(time);
  return `${at.toLocaleTimeString("en-GB", { hour12: false })}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** @param {number | string | null | undefined} value @returns {string} */
export function formatNumber(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en-US").replaceAll(",", " ");
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
  return String(Number(value.toPrecision(5)));
}

/** @param {number} mib @returns {string} */
export function formatMemory(mib) {
  return mib >= 1024 ? `${formatNumber(Math.round((mib / 1024) * 10) / 10)} GiB` : `${Math.round(mib)} MiB`;
}

/** @param {number} bytes @returns {string} */
export function formatBytes(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const at = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${at ? formatNumber(Math.round((bytes / 1024 ** at) * 10) / 10) : bytes} ${units[at]}`;
}

/** @param {number} count @param {string} noun @returns {string} */
export function countNoun(count, noun) {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {number} seconds of an estimate @returns {string} */
export function formatRemaining(seconds) {
  if (seconds < 90) return `about ${Math.max(5, 5 * Math.round(seconds / 5))} s`;
  if (seconds < 3600) return `about ${Math.round(seconds / 60)} min`;
  return `about ${formatSpan(600 * Math.round(seconds / 600))}`;
}
