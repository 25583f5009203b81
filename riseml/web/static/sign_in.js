// @ts-check
/** The view of a browser without a session at a team's server: log in with a key, or at the organisation's provider. */

import { logIn, readOffers } from "./api.js";
import { fill, make } from "./dom.js";
import { makeProblem } from "./parts.js";

/**
 * Show how to log in.
 * @param {HTMLElement} main
 * @param {string} reason why the browser has no session; empty: it had none
 * @param {() => void} done is called when the browser has a session
 */
export async function showSignIn(main, reason, done) {
  const problem = make("div");
  const note = reason && make("p", { role: "status" }, reason);
  const place = make("div", { class: "sign-in" }, make("h1", {}, "Log in"), note);
  fill(main, place);
  try {
    const { keys, provider } = await readOffers();
    place.append(...(provider === null ? [] : [makeProviderButton(provider)]), ...(keys ? [makeKeyForm(problem, done)] : []), problem);
    place.querySelector("input")?.focus();
  } catch (error) {
    place.append(makeProblem(error), make("button", { type: "button", onclick: () => showSignIn(main, reason, done) }, "Try again"));
  }
}

/** @param {HTMLElement} problem @param {() => void} done */
function makeKeyForm(problem, done) {
  const input = make("input", { type: "password", id: "key", autocomplete: "current-password", spellcheck: "false", required: true, "aria-describedby": "key-note" });
  const button = make("button", { type: "submit", class: "primary" }, "Log in with a key");
  const note = make("p", { class: "soft", id: "key-note" }, "An admin of this server gives you the first one; ", make("code", {}, "riseml key create"), " makes further ones.");
  async function submit(/** @type {Event} */ event) {
    event.preventDefault();
    button.disabled = true;
    try {
      await logIn(input.value.trim());
      done();
    } catch (error) {
      fill(problem, makeProblem(error));
      button.disabled = false;
      input.select();
    }
  }
  return make("form", { onsubmit: submit }, make("label", { for: "key" }, "API key"), input, note, button);
}

/** @param {string} provider its name */
function makeProviderButton(provider) {
  const next = encodeURIComponent(location.pathname + location.search);
  const leave = () => location.assign(`/login/provider?next=${next}`);
  return make("p", {}, make("button", { type: "button", class: "primary", onclick: leave }, `Log in at ${provider}`));
}
