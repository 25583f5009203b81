// @ts-check
/** A search with several objectives: a point for each trial over two metrics, and the front, which no trial beats in all. */

import { draw, fill, make } from "./dom.js";
import { formatNumber } from "./format.js";
import { onWidth } from "./parts.js";

const [WIDTH, HEIGHT] = [640, 320]; // pixels; it is narrower where its place is
const [LEFT, BESIDE, TOP, BOTTOM] = [70, 20, 14, 270];

/** @typedef {{metric: string, goal: string}} Objective */
/** @typedef {{id: string, values: number[], first: boolean}} Point `first`: it is on the front */

export class FrontPanel {
  constructor() {
    this.place = make("div", { class: "wide" });
    /** @type {{objectives: Objective[], points: Point[]} | null} */
    this.shownLast = null;
    onWidth(this.place, () => this.shownLast && this.show(this.shownLast.objectives, this.shownLast.points));
    this.words = make("p", { class: "soft" });
    this.element = make("section", { class: "panel apart", "aria-label": "Pareto front", hidden: true }, make("div", { class: "line" }, make("h2", {}, "Pareto front")), this.place, this.words);
  }

  /** @param {Objective[]} objectives two or more; the first two are the axes @param {Point[]} points that have a value of each */
  show(objectives, points) {
    this.element.hidden = objectives.length < 2 || !points.length;
    if (this.element.hidden) return;
    this.shownLast = { objectives, points };
    const [across, up] = objectives;
    const width = Math.min(WIDTH, this.place.clientWidth || WIDTH);
    const x = makeScale(points.map(({ values }) => values[0]), LEFT, width - BESIDE);
    const y = makeScale(points.map(({ values }) => values[1]), BOTTOM, TOP);
    const front = points.filter(({ first }) => first).sort((one, other) => one.values[0] - other.values[0]);
    const dots = points.map((point) => drawDot(point, objectives, x.place(point.values[0]), y.place(point.values[1])));
    const steps = front.map(({ values }) => `${x.place(values[0]).toFixed(1)},${y.place(values[1]).toFixed(1)}`).join(" ");
    const label = `${front.length} of ${points.length} trials are on the front of ${across.metric} and ${up.metric}`;
    const picture = draw(
      "svg",
      { class: "chart front", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label },
      drawAxes(objectives, x, y, width - BESIDE),
      objectives.length === 2 ? draw("polyline", { points: steps }) : null,
      dots,
    );
    fill(this.place, picture);
    const goals = objectives.map(({ metric, goal }) => `${metric} (${goal === "minimize" ? "smaller" : "larger"})`).join(" and ");
    this.words.textContent = `${front.map(({ id }) => id).join(", ")}: no other trial beats these in ${goals}.`;
  }
}

/** @param {Point} point @param {Objective[]} objectives @param {number} cx @param {number} cy */
function drawDot({ id, values, first }, objectives, cx, cy) {
  const words = objectives.map(({ metric }, at) => `${metric} ${formatNumber(values[at])}`).join(", ");
  return draw("circle", { class: first ? "first" : "", cx: cx.toFixed(1), cy: cy.toFixed(1), r: first ? 5 : 3.5 }, draw("title", {}, `${id}: ${words}`));
}

/** @param {number[]} numbers @param {number} from @param {number} to pixels of the least and of the largest number */
function makeScale(numbers, from, to) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const place = (/** @type {number} */ value) => (low === high ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from));
  return { low, high, place };
}

/** @param {Objective[]} objectives @param {ReturnType<typeof makeScale>} x @param {ReturnType<typeof makeScale>} y @param {number} right pixels */
function drawAxes([across, up], x, y, right) {
  const number = (/** @type {number} */ value) => formatNumber(Number(value.toPrecision(4)));
  return draw(
    "g",
    { class: "grid" },
    draw("line", { x1: LEFT, x2: right, y1: BOTTOM + 8, y2: BOTTOM + 8 }),
    draw("line", { x1: LEFT - 8, x2: LEFT - 8, y1: TOP, y2: BOTTOM }),
    [x.low, x.high].map((value) => draw("text", { x: x.place(value), y: BOTTOM + 24, "text-anchor": "middle" }, number(value))),
    [y.low, y.high].map((value) => draw("text", { x: LEFT - 12, y: y.place(value) + 4, "text-anchor": "end" }, number(value))),
    draw("text", { class: "axis", x: (LEFT + right) / 2, y: BOTTOM + 42, "text-anchor": "middle" }, `${across.metric} (${across.goal})`),
    draw("text", { class: "axis", x: LEFT, y: TOP - 2 }, `${up.metric} (${up.goal})`),
  );
}
