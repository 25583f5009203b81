// @ts-check
/**
 * What users do with one experiment or set: kill, rerun with changes, pause, stop or extend a set, remove an output.
 * Each question shows the command for it, and each action says what it did.
 */

import { get, post } from "./api.js";
import { fill, make } from "./dom.js";
import { countNoun, formatBytes } from "./format.js";
import { ask, hasEnded, linkTo, makeProblem, tell } from "./parts.js";

/** @import { Capsule, ExperimentView, PlanView, Submission } from "../wire.js" */

const PAUSE = 350; // milliseconds after the last key, before the server checks a form
const MOST_PAGES = 20; // of a listing that is measured
const PAGE = 1000; // entries of one of them
const MOST_NAMED = 8; // entries of an output that are named
const INSTALL = /add `((?:pip|uv pip|apt-get|conda) install [^`]+)` to\s+`train\.install`/;
const MOST_SHOWN = 300; // characters of a value
const PLAIN = /^[\w@%+=:,./-]+$/;

/** @param {string} text @returns {string} as a shell reads it */
export function quoteShell(text) {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** @param {ExperimentView} view @returns {(HTMLElement | null)[]} buttons, of those that make sense now */
export function makeMainActions(view) {
  const button = (/** @type {string} */ name, /** @type {string} */ label, /** @type {() => void} */ onclick, kind = "") => make("button", { type: "button", class: kind || null, "data-action": name, onclick }, label);
  const isDone = hasEnded(view.state) && (!view.search || Boolean(view.search.end));
  const isSet = view.type === "set";
  const isPaused = view.reason === "PAUSED";
  const extends_ = isSet && view.search && view.search.method !== "grid";
  return [
    !isDone && isSet ? button("pause", isPaused ? "Resume" : "Pause", () => askPause(view, !isPaused)) : null,
    !isDone && isSet ? button("stop", "Stop", () => askStop(view)) : null,
    extends_ ? button("add trials", "Add trials", () => askTrials(view)) : null,
    isDone ? null : button("kill", "Kill", () => askKill(view), "danger"),
    view.type === "experiment" ? button("rerun", "Rerun", () => askRerun(view)) : null,
    view.type === "experiment" && view.closed ? button("remove output", "Delete output", () => askRemoval(view), "danger") : null,
  ];
}

/** @param {ExperimentView} view */
function askKill(view) {
  const text = view.type === "set" ? "All of its experiments end now, and no further ones begin. What they have written stays." : "All of its jobs end now. What they have written stays.";
  ask({ title: `Kill ${view.id}?`, text, yes: "Kill", isDangerous: true, command: `riseml kill ${view.id}` }, async () => {
    await post(`/experiments/${encodeURIComponent(view.id)}/kill`);
    tell(`${view.id} is being ended.`);
  });
}

/** @param {ExperimentView} view @param {{paused?: boolean, stop?: boolean}} change */
async function changeSet(view, change) {
  await post(`/experiments/${encodeURIComponent(view.id)}/search`, { paused: change.paused ?? null, concurrency: null, stop: change.stop ?? false });
}

/** @param {ExperimentView} view @param {boolean} paused */
function askPause(view, paused) {
  const text = paused ? "What runs goes on to its end. No further experiment of it starts until you resume it." : "Its further experiments start again.";
  const what = paused ? "Pause" : "Resume";
  ask({ title: `${what} ${view.id}?`, text, yes: what, command: `riseml search ${view.id} --${what.toLowerCase()}` }, async () => {
    await changeSet(view, { paused });
    tell(paused ? `${view.id} starts nothing further.` : `${view.id} goes on.`);
  });
}

/** @param {ExperimentView} view */
function askStop(view) {
  const text = "What runs goes on to its end. What has not begun never begins. This cannot be undone; a search takes further trials later.";
  ask({ title: `Stop ${view.id}?`, text, yes: "Stop", isDangerous: true, command: `riseml search ${view.id} --stop` }, async () => {
    await changeSet(view, { stop: true });
    tell(`${view.id} starts nothing further.`);
  });
}

/** @param {ExperimentView} view */
function askTrials(view) {
  const count = make("input", { type: "number", id: "trials", min: 1, max: 1000, value: "10", oninput: () => shown.show(`riseml train ${view.id} --trials ${count.value}`) });
  const form = make("div", { class: "form" }, make("label", { for: count.id }, make("span", {}, "How many, 1 to 1000"), count));
  const shown = ask({ title: `Add trials to ${view.id}`, text: "They run what the set runs, with the project's files of then. The search chooses their points from all trials so far.", yes: "Add", form, command: `riseml train ${view.id} --trials 10` }, async () => {
    const trials = Number(count.value);
    if (!Number.isInteger(trials) || trials < 1 || trials > 1000) throw new Error("Write a whole number from 1 to 1000.");
    const names = view.search?.variables ?? [];
    if (names.length) throw new Error(`Its trials need variables of your shell (${names.join(", ")}): type \`riseml train ${view.id} --trials ${trials}\` there.`);
    await post(`/experiments/${encodeURIComponent(view.id)}/trials`, { trials, environment: {} });
    tell(`${view.id} gets ${countNoun(trials, "further trial")}.`);
  });
}

/** Ask before the output goes: first what it is, and how much. @param {ExperimentView} view */
function askRemoval(view) {
  const what = make("p", { role: "status" }, "Its size is being measured.");
  ask({ title: `Delete the output of ${view.id}?`, text: "The experiment, its log and its metrics stay. This cannot be undone.", yes: "Delete", isDangerous: true, form: what, command: `riseml rm -r 'output://${view.id}/*'` }, async () => {
    const path = /** @type {`/experiments/${string}/output/remove`} */ (`/experiments/${encodeURIComponent(view.id)}/output/remove`);
    let [files, size] = [0, 0];
    for (let isRemoved = false; !isRemoved; ) {
      const part = await post(path);
      isRemoved = part.removed;
      files += part.files;
      size += part.size;
    }
    tell(`Deleted ${countNoun(files, "file")}, ${formatBytes(size)}, of ${view.id}.`);
  });
  describeOutput(view.id).then((text) => fill(what, text), (error) => fill(what, error instanceof Error ? error.message : String(error)));
}

/** @param {string} id @returns {Promise<string>} such as `3 files, 5.2 KiB: history.csv, checkpoints/` */
async function describeOutput(id) {
  let [files, size, after, pages] = [0, 0, "", 0];
  /** @type {Set<string>} */
  const names = new Set();
  do {
    const found = await get("/files", { root: "output", of: id, path: "", after: after || null, limit: PAGE, deep: true });
    for (const entry of found.entries) {
      const [first, ...rest] = entry.path.split("/");
      names.add(rest.length || entry.kind === "folder" ? `${first}/` : first);
      if (entry.kind === "folder") continue;
      files += 1;
      size += entry.size;
    }
    after = found.next ?? "";
    pages += 1;
  } while (after && pages < MOST_PAGES);
  if (!names.size) return "It has no files.";
  const shown = [...names].slice(0, MOST_NAMED).join(", ");
  return `${after ? "More than " : ""}${countNoun(files, "file")}, ${formatBytes(size)}: ${shown}${names.size > MOST_NAMED ? ` and ${names.size - MOST_NAMED} more` : ""}.`;
}

/** Run an experiment again, with changed parameters if the user wants. @param {ExperimentView} view @param {string} [step] to add to `install` */
export async function askRerun(view, step = "") {
  let found;
  try {
    found = await get(`/experiments/${encodeURIComponent(view.id)}/capsule`);
  } catch (error) {
    ask({ title: `${view.id} cannot be repeated`, text: error instanceof Error ? error.message : String(error), yes: "Try again" }, () => askRerun(view, step));
    return;
  }
  new RerunForm(view, found.capsule, found.config, step).show();
}

class RerunForm {
  /** @param {ExperimentView} view @param {Capsule} capsule @param {string} config @param {string} step */
  constructor(view, capsule, config, step) {
    this.view = view;
    this.capsule = capsule;
    this.config = config;
    this.step = step;
    this.timer = 0;
    this.reading = 0;
    this.fields = Object.entries(capsule.parameters).map(([name, value], at) => ({ name, value, input: make("input", { type: "text", id: `parameter-${at}`, value, autocomplete: "off", spellcheck: "false", oninput: () => this.checkSoon() }) }));
    this.difference = make("div", { class: "difference", role: "status" });
    const labels = this.fields.map(({ name, input }) => make("label", { for: input.id }, make("span", {}, name), input));
    this.form = make("div", { class: "form" }, labels, this.difference);
    this.shown = { show: (/** @type {string} */ _) => {} };
  }

  show() {
    const text = "A new experiment runs with the same code and image. This one stays as it is.";
    this.shown = ask({ title: `Run ${this.view.id} again?`, text, yes: "Rerun", form: this.form, command: this.command }, () => this.run());
    if (this.step) this.check();
    else this.showDifference(null);
  }

  get changed() {
    return this.fields.filter(({ value, input }) => input.value !== value);
  }

  /** The setting that adds the step to those of riseml.yml; what a framework installs by itself is not in the file. @returns {[string, string][]} */
  get settings() {
    if (!this.step) return [];
    const steps = (this.capsule.environments[0]?.install ?? []).filter((one) => this.config.includes(one));
    return [["train.install", JSON.stringify([...steps, this.step])]];
  }

  get command() {
    const parameters = this.changed.map(({ name, input }) => `-p ${quoteShell(`${name}=${input.value}`)}`);
    const settings = this.settings.map(([path, value]) => `--set ${quoteShell(`${path}=${value}`)}`);
    return ["riseml rerun", this.view.id, ...parameters, ...settings].join(" ");
  }

  /** Let the server check the form when the user pauses. */
  checkSoon() {
    this.shown.show(this.command);
    this.showDifference(null);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  async check() {
    const reading = (this.reading += 1);
    try {
      const plan = await post("/plans", this.submission);
      if (reading === this.reading) this.showDifference(plan);
    } catch (error) {
      if (reading === this.reading) fill(this.difference, this.listChanges(), makeProblem(error));
    }
  }

  /** @param {PlanView | null} plan null: it is not known yet */
  showDifference(plan) {
    const count = plan ? plan.experiments.length : 1;
    const waits = plan?.experiments[0]?.waits;
    const fate = plan && make("p", {}, count > 1 ? `It would be a set of ${countNoun(count, "experiment")}. ` : "The server accepts it. ", waits ? `It would wait: ${waits}` : "It would start at once.");
    fill(this.difference, this.listChanges(), fate, plan?.notes.map((note) => make("p", { class: "soft" }, note)));
  }

  listChanges() {
    const rows = [
      ...this.changed.map(({ name, value, input }) => make("li", {}, `${name}: `, make("del", {}, shorten(value)), " → ", make("ins", {}, shorten(input.value)))),
      ...(this.step ? [make("li", {}, "train.install: ", make("ins", {}, `+ ${this.step}`))] : []),
    ];
    return rows.length ? make("ul", { "aria-label": "What differs" }, rows) : make("p", { class: "soft" }, "Nothing differs from the former run.");
  }

  /** @returns {Submission} */
  get submission() {
    const base = makeSubmission(this.capsule, this.config);
    const parameters = /** @type {[string, string][]} */ (this.fields.map(({ name, input }) => [name, input.value]));
    return { ...base, parameters, ...(this.step ? { settings: this.settings } : {}) };
  }

  async run() {
    if (this.capsule.variables.passed.length) {
      throw new Error(`It needs variables of your shell (${this.capsule.variables.passed.join(", ")}): type \`${this.command}\` there.`);
    }
    const made = await post("/experiments", { ...this.submission, key: this.key ??= crypto.randomUUID() });
    tell(`Started ${made.id}, which repeats ${this.view.id}.`);
    const link = make("a", { href: linkTo(made.id) });
    document.body.append(link);
    link.click();
    link.remove();
  }

  /** @type {string | undefined} of the submission: pressed twice, the button starts one experiment */
  key;
}

/** @param {string} text */
function shorten(text) {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}

/** @param {Capsule} capsule @param {string} config @returns {Submission} */
function makeSubmission(capsule, config) {
  const pinned = capsule.environments.flatMap(({ image, digest }) => (digest === null ? [] : [{ image, digest }]));
  return {
    project: capsule.project,
    file: capsule.code.file || "riseml.yml",
    config,
    parameters: Object.entries(capsule.parameters),
    annotation: { name: "", tags: capsule.tags ?? [], note: capsule.note ?? "" },
    rerun_of: capsule.experiment,
    pinned,
    ...(capsule.code.digest ? { snapshot: capsule.code.digest } : {}),
    ...(capsule.code.git ? { git: capsule.code.git } : {}),
  };
}

/** @param {string} advice of a failed experiment @returns {string} the step that it says to add to `install`; empty: none */
export function findInstallStep(advice) {
  return INSTALL.exec(advice)?.[1] ?? "";
}

/** @param {ExperimentView} view @returns {HTMLElement | null} a button that follows its advice; null: no button can */
export function makeAdviceAction(view) {
  const step = view.type === "experiment" ? findInstallStep(view.advice) : "";
  return step ? make("button", { type: "button", class: "primary", "data-action": "follow the advice", onclick: () => askRerun(view, step) }, "Add to install and rerun") : null;
}
