// @ts-check
/** Reports: the list of them, one of them with its live parts, and the editor with a preview beside the text. */

import { ApiError, get, isTeam, post } from "./api.js";
import { fill, make } from "./dom.js";
import { ask, makeAge, makeCommand, makeProblem, makeTable, tell } from "./parts.js";
import { guard } from "./rights.js";
import { ReportBody } from "./report_blocks.js";

/** @import { ReportView } from "../wire.js" */

const PAUSE = 500; // milliseconds after the last key before the preview is read
const DRAFT = "riseml-report "; // begins the keys of texts that are not saved yet
const BLOCKS = {
  Chart: "```chart\nruns: [1, 2]\nmetric: loss\n```\n",
  Table: "```table\nruns: [1, 2]\ncolumns: [state, loss, time]\n```\n",
  Media: "```media\nruns: [1, 2]\nname: samples\n```\n",
};
const FIRST = "# Title\n\nWhat the runs show.\n\n" + BLOCKS.Chart;

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
export async function showReports(main, page) {
  const isEdited = new URLSearchParams(location.search).has("edit");
  if (page.parts.length < 2) return isEdited ? new ReportEditor(main, page, null).show() : showList(main, page);
  const report = await readReport(page.parts[1], page.signal).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return showAbsent(main, page.parts[1], error);
    throw error;
  });
  if (!report) return;
  if (isEdited && report.can_change) new ReportEditor(main, page, report).show();
  else showReport(main, page, report);
}

/** @param {string} name @param {AbortSignal} signal @returns {Promise<ReportView>} */
function readReport(name, signal) {
  return get(`/reports/${encodeURIComponent(name)}`, {}, signal);
}

/** @param {HTMLElement} main @param {string} name @param {ApiError} error */
function showAbsent(main, name, error) {
  const reasons = "Either it does not exist, or it is not shared with you: its user saves it in a team project in which you are.";
  fill(main, make("section", { role: "alert" }, make("h1", {}, `No report ${name}`), make("p", { class: "sentence" }, `${error.message}.`), isTeam && make("p", {}, reasons), make("p", {}, make("a", { href: "/reports" }, "Reports"))));
}

/** @param {HTMLElement} main @param {import("./app.js").Page} page */
async function showList(main, page) {
  const { reports } = await get("/reports", {}, page.signal);
  const rows = reports.map((one) => [make("a", { href: linkToReport(one.id) }, one.title), one.id, one.project, makeAge(one.changed_at)]);
  const create = make("a", { class: "button primary", href: "/reports?edit=1" }, "New report");
  const empty = make("section", { class: "empty" }, make("p", {}, "No report is kept so far. A report is a page of Markdown with live charts, tables and pictures of runs that you choose; you send its address, or export it as one file."), makeCommand("riseml report create lr-sweep report.md"));
  fill(main, make("div", { class: "line" }, make("h1", {}, "Reports"), make("div", { class: "actions" }, create)), rows.length ? makeTable(["Title", "Name", "Project", "Changed"], rows, { caption: "Reports" }) : empty);
}

/** @param {string} id @returns {string} */
function linkToReport(id) {
  return `/reports/${encodeURIComponent(id)}`;
}

/** @param {HTMLElement} main @param {import("./app.js").Page} page @param {ReportView} report */
function showReport(main, page, report) {
  document.title = `${report.title} · riseml`;
  const body = new ReportBody(page.signal);
  const edit = make("a", { class: "button", href: `${linkToReport(report.id)}?edit=1` }, "Edit");
  const exported = make("button", { type: "button", onclick: () => ask({ title: `Export ${report.id}`, text: "The command writes one HTML file that needs no network: charts as pictures, tables, and media as data.", yes: "Done", command: `riseml report export ${report.id}` }, async () => {}) }, "Export");
  const remove = make("button", { type: "button", class: "danger", onclick: () => askRemoval(report) }, "Delete");
  guard([remove], report.can_change ? "" : `${report.user} or an admin may do this`);
  const actions = make("div", { class: "actions" }, report.can_change && edit, exported, remove);
  const facts = make("p", { class: "soft facts" }, make("span", {}, report.id), make("span", {}, `of ${report.user}`), report.project && make("span", {}, `project ${report.project}`), make("span", {}, "changed ", makeAge(report.changed_at)));
  const hasHeading = report.blocks.some(({ pieces }) => pieces.some(({ kind, tag }) => kind === "open" && tag === "h1"));
  fill(main, make("div", { class: "line" }, facts, actions), !hasHeading && make("h1", {}, report.title), body.element);
  body.show(report.blocks);
  body.follow(page.feed, page.signal);
}

/** @param {ReportView} report */
function askRemoval(report) {
  ask({ title: `Delete the report ${report.id}?`, text: "It cannot be undone. Its runs stay.", yes: "Delete", isDangerous: true, command: `riseml report delete ${report.id} --yes` }, async () => {
    await post("/reports/remove", { name: report.id });
    tell(`Deleted the report ${report.id}.`);
    follow("/reports");
  });
}

/** Go to another view of the page. @param {string} address */
function follow(address) {
  const link = make("a", { href: address, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}

class ReportEditor {
  /** @param {HTMLElement} main @param {import("./app.js").Page} page @param {ReportView | null} report null: a new one */
  constructor(main, page, report) {
    this.main = main;
    this.page = page;
    this.report = report;
    this.draft = `${DRAFT}${report ? `${report.id} ${report.version}` : ""}`;
    const text = sessionStorage.getItem(this.draft) ?? report?.text ?? FIRST;
    this.text = make("textarea", { id: "report-text", rows: 24, spellcheck: "true", value: text, oninput: () => this.change() });
    this.name = make("input", { type: "text", id: "report-name", value: report?.id ?? "", disabled: report !== null, maxlength: 64, autocomplete: "off", placeholder: "lr-sweep" });
    this.project = make("input", { type: "text", id: "report-project", value: report?.project ?? "", disabled: report !== null, maxlength: 128, autocomplete: "off" });
    this.problem = make("div"); // of the preview
    this.refusal = make("div"); // of what was to be saved: the preview of the same text does not remove it
    this.body = new ReportBody(page.signal);
    this.save = make("button", { type: "button", class: "primary", onclick: () => this.store() }, "Save");
    this.timer = 0;
    page.signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  show() {
    const { report, name, project, text } = this;
    const field = (/** @type {string} */ label, /** @type {HTMLElement} */ input) => make("label", { for: input.id }, make("span", {}, label), input);
    const inserts = Object.entries(BLOCKS).map(([kind, block]) => make("button", { type: "button", class: "small", onclick: () => this.insert(block) }, `Add ${kind.toLowerCase()}`));
    const cancel = make("button", { type: "button", onclick: () => this.leave() }, "Cancel");
    const title = report ? `Edit ${report.id}` : "New report";
    const form = make("div", { class: "form" }, make("div", { class: "names" }, field("Name, a part of the address", name), field(isTeam ? "Project, whose members see it" : "Project", project)), field("Markdown", text), make("div", { class: "actions" }, inserts));
    fill(this.main, make("div", { class: "line" }, make("h1", {}, title), make("div", { class: "actions" }, cancel, this.save)), this.refusal, this.problem, make("div", { class: "editor" }, form, make("section", { class: "preview", "aria-label": "Preview" }, this.body.element)));
    this.read();
  }

  change() {
    sessionStorage.setItem(this.draft, this.text.value);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(), PAUSE);
  }

  /** @param {string} block */
  insert(block) {
    const { text } = this;
    const before = text.value.slice(0, text.selectionEnd);
    const gap = !before || before.endsWith("\n\n") ? "" : before.endsWith("\n") ? "\n" : "\n\n";
    text.setRangeText(`${gap}${block}`, text.selectionEnd, text.selectionEnd, "end");
    text.focus();
    this.change();
  }

  /** Show the text as it will be. */
  async read() {
    const { value } = this.text;
    try {
      const { blocks } = await post("/reports/preview", { text: value, name: this.report?.id ?? "" });
      if (this.page.signal.aborted || value !== this.text.value) return;
      this.body.show(blocks);
      fill(this.problem);
    } catch (error) {
      if (!this.page.signal.aborted) fill(this.problem, makeProblem(error));
    }
  }

  leave() {
    sessionStorage.removeItem(this.draft);
    follow(this.report ? linkToReport(this.report.id) : "/reports");
  }

  async store() {
    const { report } = this;
    this.save.disabled = true;
    fill(this.refusal);
    try {
      const request = report ? { name: report.id, text: this.text.value, version: report.version } : { name: this.name.value.trim(), text: this.text.value, ...(this.project.value.trim() ? { project: this.project.value.trim() } : {}) };
      const saved = await post("/reports", request);
      sessionStorage.removeItem(this.draft);
      tell(`Saved ${saved.id}, version ${saved.version}.`);
      follow(linkToReport(saved.id));
    } catch (error) {
      fill(this.refusal, makeProblem(error));
      this.save.disabled = false;
    }
  }
}
