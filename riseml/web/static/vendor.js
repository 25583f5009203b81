// @ts-check
/** Modules of other projects, which the browser loads when a view needs them, never before. */

import { make } from "./dom.js";

const LACKING = "A file of the page did not come: load the page again."; // the server may have been upgraded meanwhile

/** @param {string} name @returns {Promise<unknown>} the module */
export function loadModule(name) {
  return import(`./vendor/${name}.mjs`).catch(() => {
    throw new Error(LACKING); // a browser says only that it could not fetch a module
  });
}

/** @param {string} name @returns {Promise<unknown>} */
export function loadStyle(name) {
  const href = new URL(`./vendor/${name}.css`, import.meta.url).href;
  if (document.querySelector(`link[href="${href}"]`)) return Promise.resolve();
  const link = make("link", { rel: "stylesheet", href });
  const loaded = new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => reject(new Error(LACKING));
  });
  document.head.append(link);
  return loaded;
}
