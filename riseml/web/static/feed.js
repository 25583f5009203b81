// @ts-check
/**
 * The stream of changes. It reconnects by itself, with the cursor of the last event.
 *
 * All pages of a browser share one stream: a browser opens at most six connections to a server, so the seventh page
 * with its own stream would get no answers. The page that holds the lock reads the stream and forwards the events to
 * the others; when it is closed, the next page gets the lock and continues from the same cursor.
 */

import { ApiError, stream } from "./api.js";

const FIRST_PAUSE = 250; // milliseconds before the second try
const LONGEST_PAUSE = 4000;
const SHARED = "riseml-feed"; // the lock, and the channel between the pages
const SILENCE = 45_000; // milliseconds; the server says something every 15 s
const PATIENCE = 1000; // milliseconds in which the first view waits for the stream

/** @typedef {{changed: string[], grown: string[], reset: boolean}} Changes */
/** @typedef {(changes: Changes) => void} ChangeListener */
/** @typedef {"live" | "lost" | "out"} Connection */

export class Feed {
  constructor() {
    /** @type {Set<ChangeListener>} */
    this.listeners = new Set();
    /** @type {Set<() => void>} */
    this.pulses = new Set();
    /** @type {(connection: Connection) => void} */
    this.onConnection = () => {};
    /** @type {Connection | ""} */
    this.connection = "";
    this.cursor = "";
    this.isReader = false;
    this.isHeard = false; // True: changes arrive in this page
    this.onHeard = () => {};
    /** @type {Promise<void>} a view that reads after it is resolved misses no change: the stream was open before */
    this.ready = new Promise((resolve) => (this.onHeard = resolve));
    this.channel = new BroadcastChannel(SHARED);
    this.channel.onmessage = (event) => this.hear(event.data);
  }

  /**
   * Call a listener with all changes until the signal is aborted.
   * @param {ChangeListener} listener
   * @param {AbortSignal} signal
   */
  listen(listener, signal) {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  }

  /**
   * Keep all changes from now on, for a view that reads first: its answers lack the changes that arrive while it reads.
   * @param {AbortSignal} signal
   */
  collect(signal) {
    /** @type {Changes[]} */
    const kept = [];
    /** @type {ChangeListener} */
    let pass = (changes) => void kept.push(changes);
    this.listen((changes) => pass(changes), signal);
    return {
      /** Call a listener with the kept changes and all later ones. @param {ChangeListener} listener */
      passTo(listener) {
        pass = listener;
        for (const changes of kept) listener(changes);
      },
    };
  }

  /**
   * Call a listener whenever anything arrives from the server (at least every 15 s), until the signal is aborted.
   * @param {() => void} listener
   * @param {AbortSignal} signal
   */
  onPulse(listener, signal) {
    this.pulses.add(listener);
    signal.addEventListener("abort", () => this.pulses.delete(listener));
  }

  /**
   * Call a task once when the server answers again, if the error means that it did not answer.
   * @param {unknown} error
   * @param {() => void} task
   * @param {AbortSignal} signal
   */
  onReturn(error, task, signal) {
    if (!(error instanceof ApiError) || error.status !== 0) return;
    const listener = () => {
      this.pulses.delete(listener);
      task();
    };
    this.onPulse(listener, signal);
  }

  /**
   * Return a function as `makeCoalesced` does; a task that the server did not answer runs again when it says something.
   * @param {() => Promise<void>} task
   * @param {AbortSignal} signal
   */
  makeReading(task, signal) {
    const read = makeCoalesced(() =>
      task().catch((error) => {
        this.onReturn(error, read, signal);
        throw error;
      }),
    );
    return read;
  }

  /** Follow the changes for ever: read them, or hear of them from the page that reads them. */
  async run() {
    this.channel.postMessage({ asks: true });
    setTimeout(this.onHeard, PATIENCE);
    await navigator.locks.request(SHARED, () => this.read());
  }

  /** @param {{asks?: boolean, connection?: Connection, cursor?: string, changes?: Changes | null}} message of another page */
  hear({ asks, connection, cursor, changes }) {
    if (asks) {
      if (this.isReader) this.tell(null);
      return;
    }
    this.cursor = cursor || this.cursor;
    if (connection) this.show(connection);
    if (changes) this.deliver(changes);
    this.pulse();
  }

  /** Call the listeners for any sign of the server. */
  pulse() {
    for (const listener of [...this.pulses]) listener();
  }

  /** Send the state of this page to the other pages. @param {Changes | null} changes */
  tell(changes) {
    this.channel.postMessage({ connection: this.connection, cursor: this.cursor, changes });
  }

  /** @param {Connection} connection */
  show(connection) {
    const isNew = connection !== this.connection;
    this.connection = connection;
    this.onConnection(connection);
    this.onHeard();
    if (connection === "live" && !this.isHeard) {
      this.isHeard = true;
      this.deliver({ changed: [], grown: [], reset: true }); // for views that did not wait; usually there are none
    }
    if (isNew && this.isReader) this.tell(null);
  }

  /** @returns {Promise<never>} */
  async read() {
    this.isReader = true;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      try {
        await this.follow(() => (pause = FIRST_PAUSE));
      } catch (error) {
        const isOut = error instanceof ApiError && error.status === 401;
        this.show(isOut ? "out" : "lost");
      }
      await waitOrWake(pause);
    }
  }

  /** @param {() => void} onEvent */
  async follow(onEvent) {
    const control = new AbortController();
    const headers = this.cursor ? { "Last-Event-ID": this.cursor } : {};
    const response = await stream("/changes", /** @type {Record<string, string>} */ (headers), control.signal);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        const timer = setTimeout(() => control.abort(), SILENCE);
        const { done, value } = await reader.read().finally(() => clearTimeout(timer));
        if (done) throw new ApiError("The feed has ended.", "", 0);
        const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
        text = parts.pop() ?? "";
        onEvent();
        this.show("live");
        for (const part of parts) this.take(part);
        this.pulse();
        if (parts.every((part) => part.startsWith(":"))) this.channel.postMessage({}); // the other pages get everything else anyway
      }
    } finally {
      control.abort();
    }
  }

  /** @param {string} part one event of the stream */
  take(part) {
    let data = "";
    for (const line of part.split("\n")) {
      if (line.startsWith("id: ")) this.cursor = line.slice(4);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (!data) return;
    const changes = /** @type {Changes} */ (JSON.parse(data));
    if (!changes.reset && !changes.changed.length && !changes.grown.length) return;
    this.tell(changes);
    this.deliver(changes);
  }

  /** @param {Changes} changes */
  deliver(changes) {
    for (const listener of [...this.listeners]) listener(changes);
  }
}

/** @param {number} milliseconds */
function waitOrWake(milliseconds) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      document.removeEventListener("visibilitychange", done);
      resolve(undefined);
    };
    const timer = setTimeout(done, milliseconds);
    window.addEventListener("online", done);
    document.addEventListener("visibilitychange", done);
  });
}

/**
 * Return a function that runs a task now, or once more after the current run: never two at a time, none forgotten.
 * @param {() => Promise<void>} task
 */
export function makeCoalesced(task) {
  let isRunning = false;
  let isWanted = false;
  return async function runOnce() {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await task().catch((error) => console.debug(error));
    }
    isRunning = false;
  };
}
