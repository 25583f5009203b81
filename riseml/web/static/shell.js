// @ts-check
/** A shell in a job that runs, over the stream of `riseml shell`; xterm.js draws the terminal. */

import { openSocket } from "./api.js";
import { fill, make, setText } from "./dom.js";
import { makeProblem } from "./parts.js";
import { explainRights } from "./rights.js";
import { LONGEST_PIECE, WINDOW, decodeMessage, encodeGrant, encodeInput, encodeShell, encodeSize } from "./stream_messages.js";
import { loadModule, loadStyle } from "./vendor.js";

/** @import { FitModule, Terminal, TerminalModule } from "../xterm.js" */

const MOST_LINES = 10_000; // that can be scrolled back

/** @type {import("./experiment.js").Tab} */
export function showShell(page) {
  const shell = new ShellView(page);
  return { update: () => shell.showJobs() };
}

class ShellView {
  /** @param {import("./experiment.js").ExperimentPage} page */
  constructor(page) {
    this.page = page;
    /** @type {ShellSession | null} */
    this.session = null;
    this.jobs = make("select", { "aria-label": "Job" });
    this.button = make("button", { type: "button", class: "primary", onclick: () => this.begin() }, "Open a shell");
    this.state = make("span", { class: "soft", role: "status" });
    this.place = make("div");
    const help = make("p", { class: "soft" }, make("kbd", {}, "F6"), " leaves the terminal with the keyboard. What you begin here ends with the shell, as with ", make("code", {}, "riseml shell"), ".");
    this.bar = make("div", { class: "bar", tabindex: "-1" }, this.jobs, this.button, this.state);
    fill(page.place, this.bar, this.place, help);
    page.signal.addEventListener("abort", () => this.session?.end());
    this.showJobs();
  }

  showJobs() {
    const { view, id } = this.page;
    const running = view.jobs.filter((job) => job.state === "RUNNING" && job.name !== "build");
    const chosen = this.jobs.value || id;
    const names = running.map((job) => job.id);
    if ([...this.jobs.options].map((one) => one.value).join() !== names.join()) {
      fill(this.jobs, running.map((job) => make("option", { value: job.id, selected: job.id === chosen }, job.name)));
    }
    this.jobs.disabled = !names.length || this.session !== null;
    const reason = explainRights(view);
    this.button.disabled = !names.length || this.session !== null || reason !== "";
    this.button.title = reason;
    if (!names.length && !this.session) setText(this.state, "No job of this experiment runs.");
    else if (this.state.textContent?.startsWith("No job")) setText(this.state, "");
  }

  async begin() {
    const job = this.jobs.value;
    const session = new ShellSession(this.page.signal);
    this.session = session;
    this.showJobs();
    setText(this.state, `It opens in ${job}.`);
    const box = make("div", { class: "shell", role: "group", "aria-label": `Shell in ${job}` });
    fill(this.place, box);
    try {
      await session.open(box, job, () => setText(this.state, `Open in ${job}.`), this.bar);
      setText(this.state, session.code === null ? "The shell has ended." : `The shell ended with exit code ${session.code}.`);
    } catch (error) {
      setText(this.state, "");
      if (!this.page.signal.aborted) this.place.prepend(makeProblem(error));
    }
    this.session = null;
    this.showJobs();
    this.button.focus();
  }
}

/** One terminal with its stream. */
class ShellSession {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** @type {number | null} */
    this.code = null;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.left = WINDOW; // bytes that the server accepts now
    /** @type {Uint8Array[]} what was typed and not sent yet */
    this.typed = [];
  }

  end() {
    this.socket?.close();
  }

  /**
   * Open a shell, and return when it has ended.
   * @param {HTMLElement} box
   * @param {string} job
   * @param {() => void} onReady
   * @param {HTMLElement} exit gets the focus when the user leaves the terminal
   */
  async open(box, job, onReady, exit) {
    adaptStyles(this.signal);
    const terminal = await makeTerminal(box, exit, this.signal);
    const socket = await openSocket(`/experiments/${encodeURIComponent(job)}/command`);
    this.socket = socket;
    if (this.signal.aborted) return socket.close();
    terminal.onData((text) => this.type(new TextEncoder().encode(text)));
    terminal.onBinary((text) => this.type(Uint8Array.from(text, (one) => one.charCodeAt(0))));
    terminal.onResize(() => this.send(encodeSize(terminal.rows, terminal.cols)));
    try {
      await this.talk(socket, terminal, onReady);
    } finally {
      socket.close();
      terminal.options.disableStdin = true;
      terminal.options.cursorBlink = false;
    }
  }

  /** @param {WebSocket} socket @param {Terminal} terminal @param {() => void} onReady @returns {Promise<void>} */
  talk(socket, terminal, onReady) {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error("The server broke the stream; the job runs on."));
      socket.onopen = () => this.send(encodeShell(terminal.rows, terminal.cols));
      socket.onclose = () => (this.code === null && !this.signal.aborted ? fail() : resolve());
      socket.onmessage = (event) => {
        const message = decodeMessage(event.data);
        if (message.kind === "failure") reject(Object.assign(new Error(message.message), { hint: message.hint }));
        else this.take(message, terminal, onReady);
      };
    });
  }

  /** @param {import("./stream_messages.js").StreamMessage} message @param {Terminal} terminal @param {() => void} onReady */
  take(message, terminal, onReady) {
    if (message.kind === "piece") {
      terminal.write(message.content, () => this.send(encodeGrant(message.content.length)));
    } else if (message.kind === "grant") {
      this.left += message.amount;
      this.type(new Uint8Array());
    } else if (message.kind === "exit") {
      this.code = message.code;
    } else if (message.kind === "ready") {
      onReady();
      terminal.focus();
    }
  }

  /** @param {Uint8Array<ArrayBuffer>} message */
  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(message);
  }

  /** Send the typed bytes, as soon as the server accepts them. @param {Uint8Array} bytes */
  type(bytes) {
    if (bytes.length) this.typed.push(bytes);
    for (const piece of this.takeTyped()) this.send(encodeInput(piece));
  }

  /** Return the pieces that may be sent now. @returns {Uint8Array[]} */
  takeTyped() {
    const found = [];
    while (this.left && this.typed.length) {
      const size = Math.min(this.left, LONGEST_PIECE, this.typed[0].length);
      found.push(this.typed[0].subarray(0, size));
      this.left -= size;
      this.typed[0] = this.typed[0].subarray(size);
      if (!this.typed[0].length) this.typed.shift();
    }
    return found;
  }
}

/** @param {HTMLElement} box @param {HTMLElement} exit @param {AbortSignal} signal @returns {Promise<Terminal>} */
async function makeTerminal(box, exit, signal) {
  const xterm = /** @type {Promise<TerminalModule>} */ (loadModule("xterm"));
  const addon = /** @type {Promise<FitModule>} */ (loadModule("addon-fit"));
  const [{ Terminal }, { FitAddon }] = await Promise.all([xterm, addon, loadStyle("xterm")]);
  const terminal = new Terminal({
    fontFamily: readStyle("--mono"),
    fontSize: 13,
    scrollback: MOST_LINES,
    screenReaderMode: true,
    theme: makeTheme(),
    minimumContrastRatio: 4.5,
    linkHandler: { activate: () => {} }, // a link of a job opens nothing
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(box);
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "F6") return true;
    if (event.type === "keydown") exit.focus();
    event.preventDefault();
    return false;
  });
  fit.fit();
  const watcher = new ResizeObserver(() => box.isConnected && fit.fit());
  watcher.observe(box);
  const painter = new MutationObserver(() => (terminal.options.theme = makeTheme()));
  painter.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  signal.addEventListener("abort", () => {
    watcher.disconnect();
    painter.disconnect();
    terminal.dispose();
  });
  return terminal;
}

/** @param {string} name @returns {string} the value of a variable of style.css */
function readStyle(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Return the colours of the page as those of a terminal. */
function makeTheme() {
  const accent = readStyle("--accent");
  return { background: readStyle("--panel"), foreground: readStyle("--text"), cursor: accent, selectionBackground: `${accent}55` };
}

/**
 * Apply styles of elements in a way that the policy of the page allows, until the user leaves the view. xterm.js writes
 * its colours into style elements and style attributes. The policy refuses these, since a text of a job could become
 * one; it allows sheets and declarations that a script sets.
 * @param {AbortSignal} signal
 */
function adaptStyles(signal) {
  /** @param {string} name */
  document.createElement = (name) => {
    const element = Document.prototype.createElement.call(document, name);
    return name === "style" ? makeStyle() : name === "span" ? takeStyles(element) : element;
  };
  signal.addEventListener("abort", () => Reflect.deleteProperty(document, "createElement"));
}

/** @param {HTMLElement} element @returns {HTMLElement} the same, whose style attribute sets declarations */
function takeStyles(element) {
  element.setAttribute = (name, value) => {
    if (name === "style") element.style.cssText = value;
    else HTMLElement.prototype.setAttribute.call(element, name, value);
  };
  element.cloneNode = (deep) => takeStyles(/** @type {HTMLElement} */ (HTMLElement.prototype.cloneNode.call(element, deep)));
  return element;
}

/** @returns {HTMLElement} whose text becomes a sheet of its own */
function makeStyle() {
  const sheet = new CSSStyleSheet();
  const element = make("span", { hidden: true });
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", { get: () => "", set: (text) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    HTMLElement.prototype.remove.call(element);
  };
  return element;
}
