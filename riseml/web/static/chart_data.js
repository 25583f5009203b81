// @ts-check
/** What the curves of a chart are made of: points over steps, over time or over another metric, smoothed or as reported. */

/** @import { MetricBucket } from "../wire.js" */

/**
 * @typedef {Pick<MetricBucket, "mean" | "min" | "max" | "last_step" | "first_at" | "last_at"> & {not_finite?: number, n?: number, x?: number}} Bucket
 *   `n`: the runs of which it is the mean; `x`: where it is, if that is no step
 * @typedef {object} Series
 * @property {string} name
 * @property {Bucket[]} buckets
 * @property {number[]} [range] values that the axis has, too, where the line is flat
 * @property {Last} [last] the last value as it was reported; a bucket has the mean of several
 * @property {number} [colour] its place among the colours; that of its place in the chart if there is none
 * @property {boolean} [isFaint] it is drawn thin, below the others
 * @property {boolean} [isGroup] it is the mean of several runs, and its band is drawn
 */
/**
 * @typedef {object} Line lists of equal length in the order of x
 * @property {string} name
 * @property {number} colour
 * @property {boolean} isFaint
 * @property {boolean} isGroup
 * @property {number[]} x
 * @property {(number | null)[]} y what is drawn; null: a gap
 * @property {(number | null)[]} raw the reported value, without smoothing
 * @property {(number | null)[]} low
 * @property {(number | null)[]} high
 * @property {number[]} lost values that are nan or infinite
 * @property {(number | null)[]} step
 * @property {string[]} at
 * @property {(number | null)[]} n runs of which it is the mean; null: it is no mean of runs
 * @property {number} spacing the usual distance of two of its points; 0: it has fewer than two
 * @property {number[]} range
 * @property {Last | null} last null: it has no value
 */
/** @typedef {{value: number | string, step: number | null}} Last `nan` and `inf` are texts */

export const [STEP, TIME] = ["step", "time"]; // what x can be beside a metric
const [LEAST_SHARE, MOST_SHARE] = [0.05, 0.95]; // of the values: those between count where outliers do not

/**
 * @param {Series} series
 * @param {number} place of the series in the chart
 * @param {{x: string, smoothing: number}} settings
 * @param {Series | null} [across] the metric that is x, of the same experiment
 * @returns {Line}
 */
export function makeLine(series, place, { x, smoothing }, across = null) {
  const points = listPoints(series.buckets, x, across);
  const raw = points.map(({ bucket }) => bucket.mean);
  /** @type {Line} */
  const line = {
    name: series.name,
    colour: series.colour ?? place,
    isFaint: series.isFaint ?? false,
    isGroup: series.isGroup ?? false,
    x: points.map((point) => point.x),
    y: smoothing ? smooth(raw, smoothing) : raw,
    raw,
    low: points.map(({ bucket }) => bucket.min),
    high: points.map(({ bucket }) => bucket.max),
    lost: points.map(({ bucket }) => bucket.not_finite ?? (bucket.mean === null ? 1 : 0)),
    step: points.map(({ bucket }) => bucket.last_step),
    at: points.map(({ bucket }) => bucket.last_at),
    n: points.map(({ bucket }) => bucket.n ?? null),
    spacing: 0,
    range: series.range ?? [],
    last: series.last ?? findLast(points.map(({ bucket }) => bucket)),
  };
  line.spacing = findSpacing(line.x);
  return line;
}

/** @param {Bucket[]} buckets @param {string} kind of x @param {Series | null} across @returns {{x: number, bucket: Bucket}[]} */
function listPoints(buckets, kind, across) {
  const start = buckets.length ? Date.parse(buckets[0].first_at) : 0;
  const isMetric = kind !== STEP && kind !== TIME;
  const others = isMetric ? new Map((across?.buckets ?? []).map((bucket, at) => [bucket.last_step ?? `at ${at}`, bucket.mean])) : null;
  const points = buckets.flatMap((bucket, at) => {
    let x = bucket.x ?? bucket.last_step ?? at;
    if (kind === TIME) x = (Date.parse(bucket.last_at) - start) / 1000;
    else if (others) x = others.get(bucket.last_step ?? `at ${at}`) ?? Number.NaN;
    return Number.isFinite(x) ? [{ x, bucket }] : [];
  });
  return points.sort((one, other) => one.x - other.x); // a stable sort: a retry goes back to a former step
}

/**
 * Return the exponential moving average of values as TensorBoard has it: without the pull of its start towards zero.
 * A constant curve, and values that are not finite, stay as they are.
 * @param {(number | null)[]} values @param {number} weight of what was before, from 0 to less than 1
 * @returns {(number | null)[]}
 */
export function smooth(values, weight) {
  if (values.every((value) => value === values[0])) return values;
  let last = 0;
  let count = 0;
  return values.map((value) => {
    if (value === null) return null;
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
}

/** @param {Bucket[]} buckets @returns {Last | null} */
function findLast(buckets) {
  for (let at = buckets.length - 1; at >= 0; at -= 1) {
    const { mean, last_step: step } = buckets[at];
    if (mean !== null) return { value: mean, step };
  }
  return null;
}

/** @param {number[]} xs in order @returns {number} the median distance of two that differ */
function findSpacing(xs) {
  const gaps = xs.slice(1).map((x, at) => x - xs[at]).filter((gap) => gap > 0).sort((one, other) => one - other);
  return gaps.length ? gaps[gaps.length >> 1] : 0;
}

/**
 * Return the place of the value of a line that is near x, and no other: nothing is invented where the line has none.
 * @param {Line} line @param {number} x @param {number} reach how far it may be away at least; further, if its values are further apart
 * @returns {number} -1: it has none there
 */
export function findNear(line, x, reach) {
  const most = Math.max(reach, line.spacing / 2);
  let [low, high] = [0, line.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.x[middle] < x) low = middle + 1;
    else high = middle;
  }
  const isNear = (/** @type {number} */ at) => Math.abs(line.x[at] - x) <= most;
  let right = low;
  while (right < line.x.length && isNear(right) && line.y[right] === null) right += 1;
  let left = low - 1;
  while (left >= 0 && isNear(left) && line.y[left] === null) left -= 1;
  const near = [left, right].filter((at) => at >= 0 && at < line.x.length && isNear(at));
  near.sort((one, other) => Math.abs(line.x[one] - x) - Math.abs(line.x[other] - x));
  return near[0] ?? -1;
}

/** @param {Iterable<number>} values @returns {[number, number] | null} null: there is none */
export function findExtent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? null : [low, high];
}

/** @param {number[]} values @returns {number[]} without the outermost twentieth at both ends */
export function dropOutliers(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const place = (/** @type {number} */ share) => sorted[Math.round(share * (sorted.length - 1))];
  return sorted.length ? [place(LEAST_SHARE), place(MOST_SHARE)] : [];
}

/** @param {Line[]} lines @param {string} xName @param {string} metric @returns {string} all points, as CSV */
export function writeCsv(lines, xName, metric) {
  const quote = (/** @type {unknown} */ cell) => (/[",\r\n]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell));
  const rows = lines.flatMap((line) => line.x.map((x, at) => [line.name, x, line.step[at], line.at[at], line.raw[at], line.y[at], line.low[at], line.high[at], line.n[at], line.lost[at]]));
  const heads = ["curve", `x (${xName})`, "step", "time", metric, "drawn", "least", "largest", "runs", "not finite"];
  return [heads, ...rows].map((row) => row.map((cell) => quote(cell ?? "")).join(",")).join("\r\n").concat("\r\n");
}
