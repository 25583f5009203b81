// @ts-check
/**
 * Load the page, and try again when one of its files does not arrive: browsers drop pending requests when a network of
 * the machine changes, which happens whenever a container starts.
 */

const TRIES = "riseml-tries";
const MOST_TRIES = 40;
const LONGEST_PAUSE = 1000; // milliseconds

/** @returns {Promise<void>} */
async function load() {
  await import("./app.js");
  const styles = [.../** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll('link[rel="stylesheet"]'))];
  if (styles.some((link) => !link.sheet)) throw new Error("a style sheet is missing");
  sessionStorage.removeItem(TRIES);
}

load().catch((error) => {
  const tries = Number(sessionStorage.getItem(TRIES) ?? "0");
  sessionStorage.setItem(TRIES, String(tries + 1));
  if (tries < MOST_TRIES) setTimeout(() => location.reload(), Math.min(LONGEST_PAUSE, 100 * 2 ** tries));
  else console.error(error);
});
