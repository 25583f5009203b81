// @ts-check
/** The frame around a TensorBoard: tells the server while the tab is open, and the user when TensorBoard has ended. */

const FIRST_PAUSE = 500; // milliseconds before the second try
const LONGEST_PAUSE = 8000;
const OVER = [403, 502]; // status codes after which another try is useless
const again = "Riseml's page opens it again.";

/** @param {string} text */
function say(text) {
  const place = /** @type {HTMLElement} */ (document.getElementById("end"));
  place.textContent = text;
  place.hidden = !text;
}

/** @returns {Promise<string>} why it is over; empty: ask the server again */
async function attend() {
  const response = await fetch("/.riseml/presence", { cache: "no-store" });
  if (OVER.includes(response.status)) return `${(await response.text()).split("\n")[0]}. ${again}`;
  if (!response.ok) return "";
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text && `TensorBoard ${text}. ${again}`;
    say("");
    text = (text + decoder.decode(value, { stream: true })).trim();
  }
}

for (let pause = FIRST_PAUSE, end = ""; !end; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
  const begun = performance.now();
  end = await attend().catch(() => "");
  if (performance.now() - begun > LONGEST_PAUSE) pause = FIRST_PAUSE;
  say(end || "The server does not answer. Any riseml command starts it again; this page goes on then.");
  if (!end) await new Promise((resolve) => setTimeout(resolve, pause));
}
