// @ts-check
/** The view of a user's own sessions at a team's server: browsers and commands that are logged in, each with its end. */

import { findSession, forgetSession, get, post } from "./api.js";
import { fill, make } from "./dom.js";
import { makeAge, makeProblem, makeTable } from "./parts.js";

/** @import { SessionView } from "../wire.js" */

const KINDS = { page: "browser", device: "command line" };

/** Show the sessions. @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showSessions(main, page) {
  const { user, sessions } = await get("/sessions", {}, page.signal);
  const problem = make("div");
  const end = (/** @type {SessionView} */ one) =>
    endSession(one.id)
      .then(() => (one.id === findSession() ? undefined : showSessions(main, page)))
      .catch((error) => fill(problem, makeProblem(error)));
  const logOut = make("button", { type: "button", onclick: () => endSession(findSession()).catch((error) => fill(problem, makeProblem(error))) }, "Log out");
  const rows = sessions.map((one) => [
    one.id,
    one.id === findSession() ? `${KINDS[one.kind]}, this one` : KINDS[one.kind],
    makeAge(one.created_at),
    makeAge(one.used_at),
    one.address,
    one.user_agent,
    make("button", { type: "button", class: "danger", "aria-label": `End session ${one.id}`, onclick: () => end(one) }, "End"),
  ]);
  const table = makeTable(["Session", "What", "Opened", "Last used", "Address", "Program", "End"], rows, { caption: "Sessions" });
  const note = make("p", { class: "soft" }, "A session that you end lets its browser or command in no more, from this moment on.");
  fill(main, make("div", { class: "bar" }, make("h1", {}, `Sessions of ${user}`), logOut), note, problem, table);
}

/** End a session; of this browser, the page then asks to log in. @param {string} id */
async function endSession(id) {
  await post(`/sessions/${encodeURIComponent(id)}/end`);
  if (id !== findSession()) return;
  forgetSession();
  location.assign("/");
}
