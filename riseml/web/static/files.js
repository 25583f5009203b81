// @ts-check
/** The files of OUTPUT_DIR: folders to browse, and one file at a time beside them. */

import { showName } from "./ansi.js";
import { ApiError, get } from "./api.js";
import { fill, make } from "./dom.js";
import { showFile } from "./file_preview.js";
import { formatBytes, formatMoment, toTime } from "./format.js";
import { linkTo, makeProblem, makeTable } from "./parts.js";

const PAGE = 500; // entries of one request

/** @import { FileView } from "../wire.js" */

/** @type {import("./experiment.js").Tab} */
export function showFiles(page) {
  const browser = new FileBrowser(page);
  browser.show();
  return {};
}

class FileBrowser {
  /** @param {import("./experiment.js").ExperimentPage} page */
  constructor(page) {
    this.page = page;
    this.id = page.view.id;
    this.path = new URLSearchParams(location.search).get("path") ?? "";
    this.where = make("nav", { class: "where", "aria-label": "Folder" });
    this.list = make("section", { class: "files", "aria-label": "Files" });
    this.file = make("section", { class: "file", "aria-label": "File" });
    const again = make("button", { type: "button", onclick: () => this.show() }, "Read again");
    fill(page.place, make("div", { class: "bar" }, this.where, again), make("div", { class: "browser" }, this.list, this.file));
  }

  /** Show what the address names: a folder, or a file beside its folder. */
  async show() {
    try {
      const found = await this.read(this.path, "", 0);
      const isFolder = found.at.kind === "folder";
      const folder = isFolder ? this.path : parentOf(this.path);
      fill(this.where, this.makeTrail(this.path));
      const listing = this.showFolder(folder);
      if (isFolder) fill(this.file);
      else await showFile(this.file, { id: this.id, path: this.path, file: found.at, signal: this.page.signal });
      await listing;
    } catch (error) {
      if (this.page.signal.aborted) return;
      fill(this.list, this.explain(error));
      this.page.feed.onReturn(error, () => this.show(), this.page.signal);
    }
  }

  /** @param {unknown} error */
  explain(error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (status !== 404 || this.path) return makeProblem(error);
    return make("p", { class: "empty" }, "No job has written anything into OUTPUT_DIR so far.");
  }

  /** @param {string} path @param {string} after @param {number} limit */
  read(path, after, limit) {
    return get("/files", { root: "output", of: this.id, path, after: after || null, limit }, this.page.signal);
  }

  /** @param {string} folder */
  async showFolder(folder) {
    /** @type {FileView[]} */
    const entries = [];
    let next = "";
    const problem = make("div");
    const onclick = () => readOn().catch((error) => {
      more.disabled = false;
      fill(problem, makeProblem(error));
    });
    const more = make("button", { type: "button", onclick }, "Show more");
    const readOn = async () => {
      more.disabled = true;
      const found = await this.read(folder, next, PAGE);
      entries.push(...found.entries);
      next = found.next ?? "";
      more.disabled = false;
      fill(problem);
      if (!this.page.signal.aborted) fill(this.list, this.makeList(folder, entries), next && more, problem);
    };
    await readOn();
  }

  /** @param {string} folder @param {FileView[]} entries */
  makeList(folder, entries) {
    if (!entries.length) return make("p", { class: "empty" }, folder ? "This folder is empty." : "No job has written anything into OUTPUT_DIR so far.");
    const order = (/** @type {FileView} */ one) => (one.kind === "folder" ? 0 : 1);
    const sorted = [...entries].sort((one, other) => order(one) - order(other));
    const rows = sorted.map((entry) => {
      const path = folder ? `${folder}/${entry.path}` : entry.path;
      const isFile = entry.kind === "file";
      const changed = toTime(entry.mtime / 1e9);
      return [this.makeName(path, entry), isFile ? formatBytes(entry.size) : "", changed && make("time", { datetime: changed }, formatMoment(changed))];
    });
    return makeTable(["Name", "Size", "Changed"], rows, { caption: "Files", numbers: [1] });
  }

  /** @param {string} path @param {FileView} entry */
  makeName(path, entry) {
    const name = showName(entry.path);
    if (entry.kind === "link") return `${name} → ${showName(entry.target ?? "")}`;
    if (entry.kind === "other") return `${name} (no file)`;
    const isFolder = entry.kind === "folder";
    return make("a", { href: this.addressOf(path), "aria-current": path === this.path ? "true" : null }, isFolder ? `${name}/` : name);
  }

  /** @param {string} path */
  addressOf(path) {
    return `${linkTo(this.id, "files")}${path ? `?path=${encodeURIComponent(path)}` : ""}`;
  }

  /** @param {string} path */
  makeTrail(path) {
    const names = path ? path.split("/") : [];
    const links = names.map((name, at) => {
      const here = names.slice(0, at + 1).join("/");
      return [" / ", make("a", { href: this.addressOf(here), "aria-current": here === path ? "page" : null }, showName(name))];
    });
    return [make("a", { href: this.addressOf(""), "aria-current": path ? null : "page" }, "OUTPUT_DIR"), ...links.flat()];
  }
}

/** @param {string} path */
function parentOf(path) {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}
