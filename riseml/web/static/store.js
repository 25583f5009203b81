// @ts-check
/** The experiments of a user, of a team project or of all users: read in pages, newest first, then kept up to date by the feed. */

import { ApiError, get } from "./api.js";
import { makeCoalesced } from "./feed.js";
import { isForeign } from "./rights.js";

/** @import { ExperimentView, MetricView } from "../wire.js" */

const FIRST_PAGE = 100;
const PAGE = 500;
const MOST_SINGLE = 20; // changed experiments that are read one by one
const MOST_RESULTS = 50; // experiments in one request for metrics
const WANTED_PAUSE = 100; // milliseconds in which wanted metrics are gathered
const VALUES_PAUSE = 2000; // milliseconds between two readings of the values of all experiments

export class ExperimentList {
  /** @param {import("./feed.js").Feed} feed @param {import("./rights.js").Scope} [scope] whose they are */
  constructor(feed, scope = { query: "", project: "" }) {
    this.feed = feed;
    this.scope = scope;
    /** @type {Map<string, ExperimentView>} by the ID of the experiment or set */
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
    /** @type {Set<string>} experiments and sets that must be read again */
    this.stale = new Set();
    /** @type {Set<string>} those that have changed since the last reading of all experiments began */
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

  /** Show the experiments of another scope. @param {import("./rights.js").Scope} scope */
  async choose(scope) {
    this.scope = scope;
    this.views = new Map();
    this.lasts.clear();
    this.names = [];
    this.isComplete = false;
    this.onChange();
    if (this.followed.size) this.readLasts();
    await this.readAll();
  }

  /** @param {number} limit @param {string} oldest the last ID of the page before; empty: there is none @returns {Promise<ExperimentView[]>} */
  async readPage(limit, oldest) {
    const place = this.scope.query ? { all_users: true, team_project: this.scope.project || null, older_than: oldest || null } : { before: oldest ? numberOf(oldest) : null };
    return (await get("/experiments", { all: true, archived: "shown", limit, ...place }, this.signal)).experiments;
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
    /** @type {Map<string, ExperimentView>} */
    const found = new Map();
    let oldest = "";
    for (let limit = FIRST_PAGE; ; limit = PAGE) {
      const experiments = await this.readPage(limit, oldest);
      if (reading !== this.reading) return;
      for (const view of experiments) found.set(view.id, view);
      for (const view of experiments) this.views.set(view.id, view);
      this.onChange();
      if (!experiments.length) break;
      oldest = this.scope.query ? experiments[0].id : findOldest(experiments);
      if (!this.scope.query && numberOf(oldest) <= 1) break;
    }
    this.views = found;
    this.isComplete = true;
    for (const id of this.changed) this.stale.add(id); // their pages may have been read before
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
    for (const id of changed.filter((one) => this.scope.query || !isForeign(one)).map(topOf)) {
      this.stale.add(id);
      this.changed.add(id);
    }
    for (const id of [...changed, ...grown]) if (this.metrics.has(id)) this.wanted.add(id);
    if (this.followed.size) this.readLasts();
    if (this.stale.size) this.readStale();
    if (this.wanted.size) this.readMetrics();
  }

  async refresh() {
    const ids = [...this.stale];
    this.stale.clear();
    try {
      await this.readChanged(ids);
    } catch (error) {
      for (const id of ids) this.stale.add(id);
      throw error;
    } finally {
      this.onChange();
    }
  }

  /** @param {string[]} ids */
  async readChanged(ids) {
    if (this.scope.query || ids.length <= MOST_SINGLE) {
      for (let at = 0; at < ids.length; at += MOST_SINGLE) await Promise.all(ids.slice(at, at + MOST_SINGLE).map((id) => this.readOne(id)));
      return;
    }
    const numbers = ids.map(numberOf);
    const oldest = Math.min(...numbers);
    for (let before = Math.max(...numbers) + 1; before > oldest; ) {
      const experiments = await this.readPage(Math.min(PAGE, before - oldest), String(before));
      if (!experiments.length) return;
      for (const view of experiments) this.views.set(view.id, view);
      before = numberOf(findOldest(experiments));
    }
  }

  /** @param {string} id */
  async readOne(id) {
    const { project } = this.scope;
    const view = await get(`/experiments/${encodeURIComponent(id)}`, {}, this.signal).catch((error) => {
      if (error instanceof ApiError && error.status === 404) return null; // it is no longer shared with the user
      throw error;
    });
    if (project !== this.scope.project) return;
    if (view && (!project || view.team_project === project)) this.views.set(id, view); // the present map: it may have been replaced meanwhile
    else this.views.delete(id);
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

  /** Return the part of a query that asks about the experiments of all users; empty: about one's own. */
  ofAll() {
    return this.scope.query ? { all_users: true } : {};
  }

  async readNames() {
    this.names = (await get("/metrics/names", this.ofAll(), this.signal)).names;
    return this.names;
  }

  /** Read the last value of each metric that is followed, of all experiments. */
  async fetchLasts() {
    if ([...this.followed].some((name) => !this.lasts.has(name))) await this.readNames();
    const wanted = this.names.filter((name) => this.followed.has(name.toLowerCase()));
    const found = await Promise.all(wanted.map((metric) => get("/metrics/values", { metric, ...this.ofAll() }, this.signal)));
    for (const name of this.followed) if (!this.lasts.has(name)) this.lasts.set(name, new Map());
    for (const { metric, values } of found) this.lasts.set(metric.toLowerCase(), new Map(Object.entries(values)));
    this.onChange();
  }
}

/** @param {ExperimentView[]} views @returns {string} the ID with the least number */
function findOldest(views) {
  return views.reduce((one, other) => (numberOf(other.id) < numberOf(one.id) ? other : one)).id;
}

/** @param {string} id @returns {string} the experiment or set that it is about: `paul.144` of `paul.144.3` */
export function topOf(id) {
  return id.split(".").slice(0, isForeign(id) ? 2 : 1).join(".");
}

/** @param {string} id @returns {number} `144` of `144.3` and of `paul.144.3` */
export function numberOf(id) {
  return Number.parseInt(id.split(".")[isForeign(id) ? 1 : 0], 10);
}
