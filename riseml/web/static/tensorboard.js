// @ts-check
/** Open a TensorBoard: start one, or find a running one, wait until it listens, and send the browser there. */

import { ApiError, get, isTeam, post } from "./api.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { hasEnded, linkTo, makeProblem, makeState } from "./parts.js";

/** @import { ExperimentView, JobView } from "../wire.js" */

const KIND = "tensorboard";
const NOT_YET = [0, 404, 409]; // answers about a TensorBoard that does not listen yet; 0: the server does not answer

/**
 * Return a link that starts a TensorBoard when the user clicks it. The address alone starts nothing, because any page
 * can link to it.
 * @param {string[]} ids
 */
export function makeBoardLink(ids) {
  return make("a", { class: "button", "data-action": KIND, "data-begins": true, href: `/${KIND}?${ids.map((id) => `of=${encodeURIComponent(id)}`).join("&")}` }, "TensorBoard");
}

/**
 * @param {HTMLElement} main
 * @param {import("./app.js").Page} page
 * @param {boolean} hasSites whether programs of jobs have host names of their own here
 */
export function showBoard(main, page, hasSites = !isTeam) {
  const ids = new URLSearchParams(location.search).getAll("of");
  if (!hasSites) return showCommand(main, ids);
  const place = make("div", { role: "status" });
  const button = make("button", { type: "button", class: "primary", onclick: () => begin() }, "Open TensorBoard");
  fill(main, make("div", { class: "line" }, make("h1", {}, `TensorBoard of ${ids.join(", ")}`), make("div", { class: "actions" }, button)), place);
  const begin = async () => {
    button.disabled = true;
    try {
      await open(await findBoard(ids, page.signal), place, page);
    } catch (error) {
      if (page.signal.aborted) return;
      fill(place, makeProblem(error));
      button.disabled = false;
    }
  };
  if (!history.state?.begins) return;
  history.replaceState(null, "");
  begin();
}

/**
 * Say how to open a TensorBoard of a team's server: its pages are foreign code, and need a site of their own.
 * @param {HTMLElement} main
 * @param {string[]} ids
 */
function showCommand(main, ids) {
  const why = "A TensorBoard is a program in a job, so its pages need a host name of their own in the browser, from which your session here is out of reach. This server has none for them.";
  const command = make("code", {}, `riseml tensorboard ${ids.join(" ")}`);
  fill(main, make("h1", {}, `TensorBoard of ${ids.join(", ")}`), make("p", { class: "sentence" }, why), make("p", {}, "Run ", command, " on your own machine: it opens in your browser, over the server's TLS."));
}

/**
 * Return the ID of the experiment that has the TensorBoard: the one of these, another one that shows the same, or a new one.
 * @param {string[]} ids
 * @param {AbortSignal} signal
 * @returns {Promise<string>}
 */
async function findBoard(ids, signal) {
  const views = await Promise.all(ids.map((id) => get(`/experiments/${encodeURIComponent(id)}`, {}, signal)));
  const isOwn = (/** @type {JobView} */ job) => job.name === KIND && job.state === "RUNNING";
  if (views.length === 1 && (views[0].type === KIND || (views[0].type === "experiment" && views[0].jobs.some(isOwn)))) return views[0].id;
  const { experiments } = await get("/experiments", {}, signal);
  const known = experiments.find((one) => one.type === KIND && !hasEnded(one.state) && one.shows.join() === ids.join());
  return known ? known.id : (await post("/tensorboards", { experiments: ids, key: crypto.randomUUID() })).id;
}

/**
 * Send the browser to a TensorBoard as soon as it listens; show its state until then.
 * @param {string} id
 * @param {HTMLElement} place
 * @param {import("./app.js").Page} page
 * @returns {Promise<void>}
 */
function open(id, place, { feed, signal }) {
  const path = /** @type {const} */ (`/experiments/${encodeURIComponent(id)}`);
  let isOver = false;
  return new Promise((_, reject) => {
    const fail = (/** @type {unknown} */ error) => {
      isOver = true; // the user may press the button again
      reject(error);
    };
    const attempt = makeCoalesced(async () => {
      if (signal.aborted || isOver) return;
      try {
        const url = new URL((await post(`${path}/address`)).url);
        url.port = location.port; // the port by which this browser reaches the server, perhaps through ssh
        isOver = true;
        location.replace(url);
      } catch (error) {
        if (!(error instanceof ApiError && NOT_YET.includes(error.status))) return fail(error);
        const view = await get(path, {}, signal);
        if (hasEnded(view.state)) fail(new ApiError(`TensorBoard ${id} has ended: ${view.message}`, view.last_lines.at(-1) ?? "", 409));
        else showWait(place, id, view);
      }
    });
    feed.listen(({ changed, grown, reset }) => (reset || changed.includes(id) || grown.includes(id)) && attempt(), signal);
    feed.onPulse(attempt, signal);
    attempt();
  });
}

/** @param {HTMLElement} place @param {string} id @param {ExperimentView} view */
function showWait(place, id, view) {
  const text = `TensorBoard ${id} is about to listen. ${view.message.split("\n")[0]}`;
  fill(place, make("p", { class: "sentence" }, makeState(view.state), make("span", {}, text)), make("p", {}, make("a", { href: linkTo(id, "log") }, "Its log")));
}
