// @ts-check
/** A chart with its title, its controls, its legend, the table behind it, and what can be saved of it. */

import { makeAxes } from "./chart_axes.js";
import { pickColour, readPalette } from "./chart_colours.js";
import { STEP, TIME, makeLine, writeCsv } from "./chart_data.js";
import { CurvePlot, scale, shift } from "./chart_plot.js";
import { drawSvg } from "./chart_svg.js";
import { keepSettings, readSettings } from "./chart_settings.js";
import { draw, fill, make, setText } from "./dom.js";
import { formatMoment, formatNumber, formatSpan } from "./format.js";
import { makeProblem, makeTable } from "./parts.js";

/** @import { GroupCurve } from "../wire.js" */
/** @import { Line, Series } from "./chart_data.js" */
/** @import { ChartSettings } from "./chart_settings.js" */

const MOST_KEYS = 200; // curves that the legend has
const [MOST_COLUMNS, MOST_ROWS] = [20, 500]; // of the table behind a chart
const MOST_BANDS = 8; // curves whose least and largest values are drawn
const MOST_WEIGHT = 0.99; // of the slider
const [ZOOM, PAN] = [0.7, 0.2]; // of one key
const BANDS = { range: "range", error: "standard error", none: "no band" };

/**
 * @typedef {object} Source where a chart gets what it does not have
 * @property {string} kind of the view, under which the browser keeps settings
 * @property {string} [xTitle] of x where it is no time and no metric
 * @property {boolean} [withoutTime] its values have no time
 * @property {() => string[]} [metrics] what x can be beside steps and time
 * @property {(metric: string) => Promise<Series[]>} [readAcross] another metric of the same curves
 * @property {() => string[]} [groups] what curves can be grouped by
 * @property {(by: string) => Promise<GroupCurve[]>} [readGroups]
 */

export class ChartPanel {
  /** @param {string} metric @param {Source} [source] */
  constructor(metric, source = { kind: "experiment" }) {
    this.metric = metric;
    this.source = source;
    this.count = -1; // how many values the server had when the chart was drawn
    this.settings = readSettings(source.kind, metric);
    /** @type {Series[]} */
    this.series = [];
    /** @type {Map<string, Series>} the metric that is x, by the names of the curves */
    this.across = new Map();
    /** @type {GroupCurve[] | null} */
    this.groups = null;
    /** @type {Line[]} */
    this.lines = [];
    this.pointed = -1; // the place of the value that the keyboard has chosen
    this.heading = make("span", { class: "soft" });
    this.place = make("div", { class: "plot chart", role: "img", "aria-label": `${metric}: not drawn yet`, tabindex: "0", onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), onblur: () => this.endPointing() });
    this.plot = new CurvePlot(this.place, {
      zoom: (zoom) => this.set({ zoom }),
      reset: () => this.set({ zoom: null }),
      fail: (error) => this.fail(error),
      repaint: () => this.redraw(),
      describe: (hits, rest) => this.describe(hits, rest),
    });
    this.values = make("p", { class: "values soft", role: "status" });
    this.legend = make("div", { class: "keys-of-chart", role: "group", "aria-label": `Curves of ${metric}` });
    this.table = make("div", { class: "behind", hidden: true });
    this.controls = make("div", { class: "controls" });
    this.element = make("section", { class: "panel", "aria-label": `Metric ${metric}` }, make("div", { class: "line" }, make("h2", {}, metric, this.heading), this.controls), this.place, this.values, this.legend, this.table);
    this.fillControls();
  }

  fillControls() {
    const { metric, source } = this;
    const text = (/** @type {string} */ what) => `${what} of ${metric}`;
    this.smooth = make("input", { type: "range", min: "0", max: String(MOST_WEIGHT), step: "0.01", value: String(this.settings.smoothing), "aria-label": text("Smoothing"), oninput: () => this.set({ smoothing: Number(this.smooth?.value) }) });
    this.axis = make("select", { "aria-label": text("X axis"), onchange: () => this.set({ x: this.axis?.value ?? STEP, zoom: null }) });
    this.by = make("select", { "aria-label": text("Groups"), onchange: () => this.set({ by: this.by?.value ?? "", hidden: [], zoom: null }) });
    this.band = make("select", { "aria-label": text("Band"), onchange: () => this.set({ band: this.band?.value ?? "range" }) }, Object.entries(BANDS).map(([name, words]) => make("option", { value: name }, words)));
    this.members = this.makeSwitch("members", "showsMembers", text("Members"));
    this.grouping = make("span", { class: "controls" }, make("label", {}, "band ", this.band), this.members);
    this.reset = make("button", { type: "button", class: "small", onclick: () => this.set({ zoom: null }) }, "Reset zoom");
    this.behind = make("button", { type: "button", class: "small", "aria-expanded": "false", "aria-label": text("Table"), onclick: () => this.toggleTable() }, "Table");
    const save = (/** @type {string} */ kind, /** @type {() => void} */ act) => make("button", { type: "button", class: "small", "aria-label": `Save ${metric} as ${kind}`, onclick: act }, kind);
    const more = make("details", { class: "more" }, make("summary", {}, "more"),
      make("div", { class: "controls" },
        this.makeSwitch("ignore outliers", "ignoresOutliers", text("Ignore outliers")),
        this.makeSwitch("sort by value", "isSorted", text("Sort by value")),
        make("span", {}, "save "), save("PNG", () => this.savePng()), save("SVG", () => this.saveSvg()), save("CSV", () => this.saveCsv()), this.behind));
    const grouped = source.readGroups ? [make("label", {}, "group by ", this.by), this.grouping] : [];
    fill(this.controls, make("label", {}, "smooth ", this.smooth), make("label", {}, "x ", this.axis), this.makeSwitch("log", "isLog", text("Logarithmic axis")), ...grouped, this.reset, more);
  }

  /** @param {string} label @param {"isLog" | "ignoresOutliers" | "isSorted" | "showsMembers"} setting @param {string} name */
  makeSwitch(label, setting, name) {
    const box = make("input", { type: "checkbox", checked: this.settings[setting], "aria-label": name, onchange: () => this.set({ [setting]: box.checked }) });
    return make("label", {}, box, ` ${label}`);
  }

  /** Change settings, keep them, and draw again. @param {Partial<ChartSettings>} changes */
  set(changes) {
    const former = this.settings;
    this.settings = { ...former, ...changes };
    keepSettings(this.source.kind, this.metric, this.settings);
    if (this.settings.x !== former.x || this.settings.by !== former.by) this.readFurther();
    else this.redraw();
  }

  /** @param {Series[]} series */
  show(series) {
    this.series = series;
    this.redraw();
    if (this.settings.by || this.acrossName) this.readFurther();
  }

  /** @returns {string} the metric that is x; empty: none is */
  get acrossName() {
    const { x } = this.settings;
    return x === STEP || x === TIME || !this.source.readAcross ? "" : x;
  }

  /** Read what the chosen groups, or the chosen x, need. */
  async readFurther() {
    const { by } = this.settings;
    const name = this.acrossName;
    try {
      const groups = by && this.source.readGroups ? await this.source.readGroups(by) : null;
      const across = name && this.source.readAcross ? await this.source.readAcross(name) : [];
      if (by !== this.settings.by || name !== this.acrossName) return;
      this.groups = groups;
      this.across = new Map(across.map((one) => [one.name, one]));
      this.redraw();
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {unknown} error */
  fail(error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) fill(this.table, makeProblem(error));
    this.table.hidden = false;
  }

  /** @returns {Line[]} all of them, hidden ones, too */
  makeLines() {
    const { settings, groups, acrossName } = this;
    if (settings.by && groups) return makeGroupLines(groups, this.series, settings);
    return this.series.map((one, at) => makeLine(one, at, settings, acrossName ? (this.across.get(one.name) ?? null) : null));
  }

  redraw() {
    const { settings, metric } = this;
    this.lines = this.makeLines();
    const hidden = new Set(settings.hidden);
    const visible = this.lines.filter((line) => !hidden.has(line.name));
    const own = this.lines.filter((line) => !line.isFaint);
    const last = own.length === 1 ? own[0].last : null;
    const words = settings.by && this.groups ? `groups by ${settings.by}` : "experiments";
    this.place.setAttribute("aria-label", `${metric}${last ? `, last ${formatNumber(last.value)}` : ` of ${own.length} ${words}`}`);
    setText(this.heading, settings.smoothing ? ` EMA ${settings.smoothing.toFixed(2)}` : "");
    const showsBand = !settings.smoothing && visible.length <= MOST_BANDS && !settings.by;
    this.visible = visible;
    this.axes = makeAxes(visible, { ...settings, x: settings.by ? STEP : settings.x, showsBand }, { metric: this.title, xTitle: this.xTitle }, settings.zoom);
    this.showsBand = showsBand;
    if (this.place.clientWidth) this.palette = readPalette();
    this.plot.show({ lines: visible, axes: this.axes, palette: this.palette ?? NO_PALETTE, showsBand }).catch((error) => this.fail(error));
    this.showControls();
    this.showLegend(own, hidden);
    if (!this.table.hidden) this.showTable();
  }

  get title() {
    return this.settings.smoothing ? `${this.metric} EMA ${this.settings.smoothing.toFixed(2)}` : this.metric;
  }

  get xTitle() {
    return this.settings.by ? "step" : (this.acrossName || (this.source.xTitle ?? "step"));
  }

  showControls() {
    const { settings, source } = this;
    const names = [STEP, ...(source.withoutTime ? [] : [TIME]), ...(source.readAcross ? (source.metrics?.() ?? []) : []).filter((name) => name !== this.metric)];
    if (this.axis) showOptions(this.axis, [...new Set(this.acrossName ? [...names, this.acrossName] : names)].map((name) => [name, name === STEP ? (source.xTitle ?? STEP) : name]), settings.x);
    if (this.by) showOptions(this.by, ["", ...(source.groups?.() ?? [])].map((name) => [name, name || "none"]), settings.by);
    if (this.axis) this.axis.disabled = settings.by !== "";
    if (this.band) this.band.value = settings.band;
    if (this.grouping) this.grouping.hidden = !settings.by;
    if (this.reset) this.reset.hidden = !settings.zoom;
    if (this.smooth && Number(this.smooth.value) !== settings.smoothing) this.smooth.value = String(settings.smoothing);
  }

  /** @param {Line[]} lines @param {Set<string>} hidden */
  showLegend(lines, hidden) {
    const last = lines.length === 1 ? lines[0].last : null;
    this.legend.hidden = lines.length < 2;
    if (this.pointed < 0) setText(this.values, last ? `last ${formatNumber(last.value)}${last.step === null || this.source.xTitle ? "" : ` at step ${formatNumber(last.step)}`}` : "");
    if (lines.length < 2) return fill(this.legend);
    const worth = (/** @type {Line} */ line) => Number(line.last?.value ?? Number.NaN);
    const ordered = this.settings.isSorted ? [...lines].sort((one, other) => compareWorth(worth(one), worth(other))) : lines;
    const keys = ordered.slice(0, MOST_KEYS).map((line) => {
      const title = "hide or show it; with Alt or Ctrl, it alone";
      const toggle = (/** @type {MouseEvent} */ event) => this.toggle(line.name, event.altKey || event.ctrlKey || event.metaKey);
      return make("button", { type: "button", class: `key colour-${pickColour(line.colour)}`, title, "aria-pressed": String(!hidden.has(line.name)), "data-points": line.x.length, onclick: toggle }, line.name, make("span", { class: "soft" }, ` ${formatNumber(line.last?.value)}`));
    });
    const all = hidden.size > 0 && make("button", { type: "button", class: "small", onclick: () => this.set({ hidden: [] }) }, "Show all");
    fill(this.legend, keys, lines.length > MOST_KEYS && make("span", {}, ` and ${lines.length - MOST_KEYS} more`), all);
  }

  /** Hide or show a curve; or show it alone, and all again. @param {string} name @param {boolean} isAlone */
  toggle(name, isAlone) {
    const { hidden } = this.settings;
    const others = this.lines.map((line) => line.name).filter((one) => one !== name);
    const wasAlone = others.every((one) => hidden.includes(one)) && !hidden.includes(name);
    if (isAlone) return this.set({ hidden: wasAlone ? [] : others });
    this.set({ hidden: hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name] });
  }

  /** @param {import("./chart_plot.js").Hit[]} hits @param {number} rest @returns {import("./dom.js").Child[]} */
  describe(hits, rest) {
    const [first] = hits;
    const x = first.line.x[first.at];
    const isOne = hits.every(({ line, at }) => line.x[at] === x);
    const rows = hits.map(({ line, at }) => {
      const place = isOne ? "" : ` at ${this.formatX(line.x[at])}`;
      return make("div", {}, make("span", { class: `key colour-${pickColour(line.colour)}` }, line.name), make("strong", {}, this.formatValue(line, at)), make("span", { class: "soft" }, place));
    });
    return [isOne ? make("div", { class: "soft" }, this.formatX(x)) : null, ...rows, rest > 0 ? make("div", { class: "soft" }, `and ${rest} more`) : null];
  }

  /** @param {Line} line @param {number} at @returns {string} */
  formatValue(line, at) {
    const runs = line.n[at] === null ? "" : ` (n = ${line.n[at]})`;
    const reported = this.settings.smoothing ? `, reported ${formatNumber(line.raw[at])}` : "";
    const lost = line.lost[at] ? `, ${formatNumber(line.lost[at])} not finite` : "";
    return `${formatNumber(line.y[at])}${runs}${reported}${lost}`;
  }

  /** @param {number} x @returns {string} */
  formatX(x) {
    if (this.settings.x === TIME && !this.settings.by) return x < 10 ? `${formatNumber(Number(x.toPrecision(3)))} s` : formatSpan(x);
    return `${this.xTitle} ${formatNumber(x)}`;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.axes || event.ctrlKey || event.metaKey || event.altKey) return;
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (side && event.shiftKey) this.set({ zoom: shift(this.axes, side * PAN, 0) });
    else if (side) this.pointOn(side);
    else if (event.key === "+") this.set({ zoom: scale(this.axes, ZOOM) });
    else if (event.key === "-") this.set({ zoom: scale(this.axes, 1 / ZOOM) });
    else if (event.key === "0" || event.key === "Escape") this.set({ zoom: null });
    else return;
    event.preventDefault();
  }

  /** Say the next value of the first visible curve, and those of the others beside it. @param {number} side */
  pointOn(side) {
    const longest = (this.visible ?? []).filter((line) => !line.isFaint).reduce((/** @type {Line | null} */ best, line) => (!best || line.x.length > best.x.length ? line : best), null);
    if (!longest?.x.length) return;
    const count = longest.x.length;
    this.pointed = this.pointed < 0 ? (side > 0 ? 0 : count - 1) : Math.min(count - 1, Math.max(0, this.pointed + side));
    const x = longest.x[this.pointed];
    const rows = this.plot.nameAt(x).map(({ line, at }) => `${this.lines.length > 1 ? `${line.name} ` : ""}${this.formatValue(line, at)}`);
    setText(this.values, `${this.formatX(x)}: ${rows.join(" · ") || "no value"}`);
  }

  endPointing() {
    this.pointed = -1;
    this.plot.leave();
    this.showLegend(this.lines.filter((line) => !line.isFaint), new Set(this.settings.hidden));
  }

  toggleTable() {
    this.table.hidden = !this.table.hidden;
    this.behind?.setAttribute("aria-expanded", String(!this.table.hidden));
    if (!this.table.hidden) this.showTable();
  }

  showTable() {
    const all = (this.visible ?? []).filter((line) => !line.isFaint);
    const lines = all.slice(0, MOST_COLUMNS);
    const places = lines.map((line) => new Map(line.x.map((x, at) => [lines.length > 1 ? x : at, at]))); // one curve: a row for each point
    const keys = [...new Set(places.flatMap((place) => [...place.keys()]))].sort((one, other) => one - other);
    const rows = keys.slice(0, MOST_ROWS).map((key) => {
      const x = lines.length > 1 ? key : lines[0].x[key];
      const cells = lines.map((line, at) => {
        const place = places[at].get(key);
        if (place === undefined) return "";
        return line.y[place] === null ? "not finite" : this.formatValue(line, place);
      });
      return [this.settings.x === TIME ? this.formatX(x) : formatNumber(x), ...cells];
    });
    const isCut = all.length > lines.length || keys.length > rows.length;
    const note = isCut && make("p", { class: "soft" }, `The first ${lines.length} of ${all.length} curves and ${rows.length} of ${keys.length} rows; the CSV has all.`);
    const heads = [this.axes?.xTitle ?? "", ...lines.map((line) => line.name)];
    fill(this.table, makeTable(heads, rows, { caption: `Values of ${this.metric}`, numbers: heads.map((_, at) => at) }), note);
  }

  /** Draw the chart on its background, with its title and the names of its curves, and save it. */
  savePng() {
    const picture = this.drawPicture();
    if (!picture) return;
    const image = new Image();
    const ratio = Math.max(2, devicePixelRatio);
    image.onload = () => {
      const canvas = make("canvas", { width: Math.round(image.width * ratio), height: Math.round(image.height * ratio) });
      canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => blob && this.save(blob, "png"), "image/png");
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(picture)}`;
  }

  saveSvg() {
    const picture = this.drawPicture();
    if (picture) this.save(new Blob([picture], { type: "image/svg+xml" }), "svg");
  }

  saveCsv() {
    this.save(new Blob([writeCsv(this.visible ?? [], this.axes?.xTitle ?? "", this.metric)], { type: "text/csv" }), "csv");
  }

  /** @returns {string} in SVG; empty: nothing is drawn yet */
  drawPicture() {
    if (!this.axes || !this.palette) return "";
    const picture = drawSvg({ lines: this.visible ?? [], axes: this.axes, title: this.title, palette: this.palette, showsBand: this.showsBand ?? false }, Math.max(480, this.place.clientWidth), 300);
    picture.prepend(draw("title", {}, `${this.title}, ${formatMoment(new Date().toISOString())}`));
    return new XMLSerializer().serializeToString(picture);
  }

  /** @param {Blob} blob @param {string} end of the name of its file */
  save(blob, end) {
    const href = URL.createObjectURL(blob);
    const link = make("a", { href, download: `${this.metric.replace(/[^\w.-]+/g, "_")}.${end}` });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  }
}

/** @type {import("./chart_colours.js").Palette} of a chart that has no place on the page yet */
const NO_PALETTE = { lines: [], text: "", soft: "", grid: "", back: "", font: "" };

/** @param {GroupCurve[]} groups @param {Series[]} series @param {ChartSettings} settings @returns {Line[]} members first, below the means */
function makeGroupLines(groups, series, settings) {
  const curves = new Map(series.map((one) => [one.name.split(" ")[0], one]));
  const options = { x: STEP, smoothing: settings.smoothing };
  const members = settings.showsMembers
    ? groups.flatMap((group, colour) => group.ids.flatMap((id) => {
        const curve = curves.get(id);
        return curve ? [makeLine({ ...curve, colour, isFaint: true }, colour, options)] : [];
      }))
    : [];
  const means = groups.map((group, colour) => {
    const buckets = group.x.map((x, at) => {
      const mean = group.mean[at];
      const error = group.error[at] ?? 0;
      const [min, max] = settings.band === "range" ? [group.low[at], group.high[at]] : settings.band === "error" ? [mean - error, mean + error] : [mean, mean];
      return { mean, min, max, x, n: group.n[at], last_step: x, first_at: "", last_at: "", not_finite: 0 };
    });
    return makeLine({ name: `${group.label} (n = ${group.ids.length})`, buckets, colour, isGroup: true }, colour, options);
  });
  return [...members, ...means];
}

/** @param {number} one @param {number} other @returns {number} the largest first, those without a number last */
function compareWorth(one, other) {
  if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
  return other - one;
}

/** @param {HTMLSelectElement} select @param {string[][]} options value and text of each @param {string} chosen */
function showOptions(select, options, chosen) {
  if ([...select.options].map((one) => one.value).join("\n") !== options.map(([value]) => value).join("\n")) {
    fill(select, options.map(([value, text]) => make("option", { value }, text)));
  }
  select.value = chosen;
}
