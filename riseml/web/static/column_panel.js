// @ts-check
/** The dialog that chooses the columns of a table: a search, what is shown in its order, and what can be shown. */

import { fill, make } from "./dom.js";

/** @import { TableColumn } from "../wire.js" */

const KINDS = /** @type {const} */ ([
  ["parameters", "Parameters"],
  ["metrics", "Metrics"],
  ["own", "Others"],
]);

/**
 * @param {{available: TableColumn[], columns: string[], pinned: string[]}} shown
 * @param {(columns: string[], pinned: string[]) => void} choose gets what the user chooses; no columns: the usual ones
 */
export function chooseColumns(shown, choose) {
  const panel = new ColumnPanel(shown, choose);
  document.body.append(panel.dialog);
  panel.dialog.showModal();
}

class ColumnPanel {
  /** @param {{available: TableColumn[], columns: string[], pinned: string[]}} shown @param {(columns: string[], pinned: string[]) => void} choose */
  constructor({ available, columns, pinned }, choose) {
    this.available = available;
    this.columns = [...columns];
    this.pinned = new Set(pinned.filter((name) => columns.includes(name)));
    this.search = make("input", { type: "search", "aria-label": "Search the columns", placeholder: "a part of a name", autocomplete: "off", spellcheck: "false", oninput: () => this.showOffers() });
    this.chosen = make("ol", { class: "columns", "aria-label": "Columns that are shown" });
    this.offers = make("div", { class: "offers" });
    const differing = make("button", { type: "button", onclick: () => this.takeDiffering() }, "Columns that differ");
    const usual = make("button", { type: "button", onclick: () => this.end(() => choose([], [])) }, "The usual ones");
    const cancel = make("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel");
    const save = make("button", { type: "button", class: "primary", onclick: () => this.end(() => choose(this.columns, [...this.pinned])) }, "Show");
    const parts = make("div", { class: "two" }, make("div", {}, make("h3", {}, "Shown"), this.chosen), make("div", {}, make("h3", {}, "All"), this.search, this.offers));
    this.dialog = make("dialog", { class: "large", "aria-labelledby": "columns-title" }, make("h2", { id: "columns-title" }, "Columns"), parts, make("div", { class: "actions" }, differing, usual, cancel, save));
    this.dialog.addEventListener("close", () => this.dialog.remove());
    this.show();
  }

  /** @param {() => void} act */
  end(act) {
    this.dialog.close();
    act();
  }

  show() {
    fill(this.chosen, this.columns.map((name, at) => this.makeChosen(name, at)));
    this.showOffers();
  }

  /** @param {string} name @param {number} at */
  makeChosen(name, at) {
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onclick, /** @type {boolean | null} */ pressed = null) =>
      make("button", { type: "button", class: "quiet", "aria-label": `${label} ${name}`, "aria-pressed": pressed === null ? null : String(pressed), onclick }, text);
    const item = make("li", { draggable: "true" }, make("span", { class: "title" }, name), button("↑", "Up:", () => this.move(at, at - 1)), button("↓", "Down:", () => this.move(at, at + 1)), button("pin", "Pin", () => this.pin(name), this.pinned.has(name)), button("×", "Leave out", () => this.toggle(name)));
    item.addEventListener("dragstart", (event) => event.dataTransfer?.setData("text/plain", name));
    item.addEventListener("dragover", (event) => event.preventDefault());
    item.addEventListener("drop", (event) => {
      event.preventDefault();
      this.move(this.columns.indexOf(event.dataTransfer?.getData("text/plain") ?? ""), at);
    });
    return item;
  }

  /** @param {number} from @param {number} to */
  move(from, to) {
    if (from < 0 || to < 0 || to >= this.columns.length) return;
    this.columns.splice(to, 0, ...this.columns.splice(from, 1));
    this.show();
  }

  /** @param {string} name */
  pin(name) {
    if (!this.pinned.delete(name)) this.pinned.add(name);
    this.show();
  }

  /** @param {string} name */
  toggle(name) {
    const at = this.columns.indexOf(name);
    if (at < 0) this.columns.push(name);
    else this.columns.splice(at, 1);
    this.pinned.delete(name);
    this.show();
  }

  takeDiffering() {
    const own = ["rank", "id", "state"].filter((name) => this.columns.includes(name) || name === "id");
    const isChosen = (/** @type {TableColumn} */ column) => column.differs && column.kind !== "own" && !column.part;
    this.columns = [...own, ...this.available.filter(isChosen).map(({ name }) => name)];
    this.show();
  }

  showOffers() {
    const sought = this.search.value.trim().toLowerCase();
    const found = this.available.filter(({ name }) => name.toLowerCase().includes(sought));
    const lists = KINDS.map(([kind, title]) => {
      const items = found.filter((column) => column.kind === kind).map((column) => this.makeOffer(column));
      return items.length > 0 && make("fieldset", {}, make("legend", {}, title), items);
    });
    fill(this.offers, lists, !found.length && make("p", { class: "soft" }, "No column has this in its name."));
  }

  /** @param {TableColumn} column */
  makeOffer({ name, differs }) {
    const box = make("input", { type: "checkbox", "aria-label": name, checked: this.columns.includes(name), onchange: () => this.toggle(name) });
    return make("label", { class: "offer" }, box, " ", name, !differs && make("span", { class: "soft" }, " the same in all"));
  }
}
