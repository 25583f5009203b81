// @ts-check
/** All experiments, as the server shows them: read in pages, newest first, then kept up to date by the feed. */

import { get } from "./api.js";
import { makeCoalesced } from "./feed.js";

/** @import { ExperimentView, MetricView } from "../wire.js" */

const FIRST_PAGE = 100;
const PAGE = 500;
const MOST_SINGLE = 20; // changed experiments that are read one by one
const MOST_RESULTS = 50; // experiments in one request for metrics
const WANTED_PAUSE = 100; // milliseconds in which wanted metrics are gathered
const VALUES_PAUSE = 2000; // milliseconds between two readings of the values of all experiments

export class ExperimentList {
  /** @param {import("./feed.js").Feed} feed */
  constructor(feed) {
    this.feed = feed;
    /** @type {Map<number, ExperimentView>} by number */
    this.views = new Map();
    /** @type {Map<string, MetricView[]>} metrics by ID */
    this.metrics = new Map();
    /** @type {Set<string>} IDs whose metrics must be read */
    this.wanted = new Set();
    /** @type {Map<string, Map<string, number | null>>} last values of all experiments, by metric in lower case, and by ID */
    this.lasts = new Map();
    /** @type {string[]} names of the metrics of all experiments */
    this.names = [];
    /** @type {Set<string>} names of metrics in lower case whose values are shown or filtered by */
    this.followed = new Set();
    /** @type {Set<number>} numbers that must be read again */
    this.stale = new Set();
    /** @type {Set<number>} numbers that have changed since the last reading of all experiments began */
    this.changed = new Set();
    this.reading = 0; // number of the newest reading of all experiments
    this.isLacking = false; // True: that reading has failed
    this.isComplete = false;
    this.onChange = () => {};
    this.onMetrics = () => {}; // called when metrics of visible rows have arrived
    this.readStale = makeCoalesced(() => this.refresh());
    this.readMetrics = makeCoalesced(async () => {
      await new Promise((resolve) => setTimeout(resolve, WANTED_PAUSE)); // skip rows that the user scrolls past
      await this.fetchMetrics();
    });
    this.readLasts = makeCoalesced(async () => {
      await this.fetchLasts();
      await new Promise((resolve) => setTimeout(resolve, VALUES_PAUSE));
    });
  }

  /** Read everything, and follow the changes until the signal is aborted. @param {AbortSignal} signal */
  async start(signal) {
    this.signal = signal;
    this.feed.listen((changes) => this.note(changes), signal);
    this.feed.onPulse(() => this.readLacking(), signal);
    await this.readAll();
  }

  async readAll() {
    const reading = (this.reading += 1);
    this.isLacking = false;
    this.changed.clear();
    try {
      await this.readPages(reading);
    } catch (error) {
      this.isLacking = reading === this.reading;
      throw error;
    }
  }

  /** Read all pages, unless a newer reading begins meanwhile. @param {number} reading */
  async readPages(reading) {
    /** @type {Map<number, ExperimentView>} */
    const found = new Map();
    let before = null;
    for (let limit = FIRST_PAGE; ; limit = PAGE) {
      const { experiments } = await get("/experiments", { all: true, archived: "shown", limit, before }, this.signal);
      if (reading !== this.reading) return;
      for (const view of experiments) found.set(numberOf(view.id), view);
      for (const view of experiments) this.views.set(numberOf(view.id), view);
      this.onChange();
      if (!experiments.length) break;
      before = Math.min(...experiments.map((view) => numberOf(view.id)));
      if (before <= 1) break;
    }
    this.views = found;
    this.isComplete = true;
    for (const number of this.changed) this.stale.add(number); // their pages may have been read before
    this.onChange();
    if (this.stale.size) this.readStale();
  }

  /** Repeat a failed reading. */
  readLacking() {
    if (this.isLacking) this.readAll().catch((error) => console.debug(error));
    if (this.stale.size) this.readStale();
    if (this.wanted.size) this.readMetrics();
    if ([...this.followed].some((name) => !this.lasts.has(name))) this.readLasts();
  }

  /** @param {import("./feed.js").Changes} changes */
  note({ changed, grown, reset }) {
    if (reset) {
      this.stale.clear();
      this.metrics.clear();
      if (this.followed.size) this.readLasts();
      this.readAll().catch((error) => console.debug(error));
      return;
    }
    for (const number of changed.filter(isOwn).map(numberOf)) {
      this.stale.add(number);
      this.changed.add(number);
    }
    for (const id of [...changed, ...grown]) if (this.metrics.has(id)) this.wanted.add(id);
    if (this.followed.size) this.readLasts();
    if (this.stale.size) this.readStale();
    if (this.wanted.size) this.readMetrics();
  }

  async refresh() {
    const numbers = [...this.stale];
    this.stale.clear();
    try {
      await this.readNumbers(numbers);
    } catch (error) {
      for (const number of numbers) this.stale.add(number);
      throw error;
    } finally {
      this.onChange();
    }
  }

  /** @param {number[]} numbers */
  async readNumbers(numbers) {
    if (numbers.length <= MOST_SINGLE) {
      await Promise.all(numbers.map((number) => this.readOne(number)));
      return;
    }
    const oldest = Math.min(...numbers);
    for (let before = Math.max(...numbers) + 1; before > oldest; ) {
      const { experiments } = await get("/experiments", { all: true, archived: "shown", limit: Math.min(PAGE, before - oldest), before }, this.signal);
      if (!experiments.length) return;
      for (const view of experiments) this.views.set(numberOf(view.id), view);
      before = Math.min(...experiments.map((view) => numberOf(view.id)));
    }
  }

  /** @param {number} number */
  async readOne(number) {
    const view = await get(`/experiments/${number}`, {}, this.signal);
    this.views.set(number, view); // the present map: it may have been replaced meanwhile
  }

  /** Request the metrics of the rows that are shown, and of no others. @param {string[]} ids */
  want(ids) {
    for (const id of this.wanted) if (!this.metrics.has(id)) this.wanted.delete(id);
    for (const id of ids) if (!this.metrics.has(id)) this.wanted.add(id);
    if (this.wanted.size) this.readMetrics();
  }

  async fetchMetrics() {
    const ids = [...this.wanted].slice(0, MOST_RESULTS);
    for (const id of ids) {
      this.wanted.delete(id);
      if (!this.metrics.has(id)) this.metrics.set(id, []);
    }
    if (!ids.length) return;
    try {
      const { experiments } = await get("/results", { of: ids }, this.signal);
      for (const one of experiments) this.metrics.set(one.id, one.metrics);
    } catch (error) {
      for (const id of ids) this.wanted.add(id);
      throw error;
    }
    this.onMetrics();
    if (this.wanted.size) this.readMetrics();
  }

  /** Follow the values of these metrics of all experiments, and of no other. @param {string[]} names in lower case */
  follow(names) {
    const isNew = names.some((name) => !this.followed.has(name));
    this.followed = new Set(names);
    if (isNew) this.fetchLasts().catch((error) => console.debug(error));
  }

  async readNames() {
    this.names = (await get("/metrics/names", {}, this.signal)).names;
    return this.names;
  }

  /** Read the last value of each metric that is followed, of all experiments. */
  async fetchLasts() {
    if ([...this.followed].some((name) => !this.lasts.has(name))) await this.readNames();
    const wanted = this.names.filter((name) => this.followed.has(name.toLowerCase()));
    const found = await Promise.all(wanted.map((metric) => get("/metrics/values", { metric }, this.signal)));
    for (const name of this.followed) if (!this.lasts.has(name)) this.lasts.set(name, new Map());
    for (const { metric, values } of found) this.lasts.set(metric.toLowerCase(), new Map(Object.entries(values)));
    this.onChange();
  }
}

/** @param {string} id @returns {boolean} whether it names no user: the list has the caller's own experiments */
function isOwn(id) {
  return /^\d/.test(id);
}

/** @param {string} id @returns {number} `144` of `144.3` */
export function numberOf(id) {
  return Number.parseInt(id, 10);
}
