// @ts-check
/** Rows of which only the visible ones are elements: a table of 10,000 or a log of 1,000,000 rows scrolls smoothly. */

const OVERSCAN = 10; // rows above and below the visible ones
const MOST_HEIGHT = 8_000_000; // pixels; browsers draw no element that is much higher

/**
 * @typedef {object} VirtualOptions
 * @property {HTMLElement} scroller scrolls, and has a height of its own
 * @property {HTMLElement} rows gets the rows
 * @property {number} height of one row, in pixels
 * @property {(first: number, last: number) => Node[]} draw makes the rows from `first` up to, and without, `last`
 * @property {(first: number, last: number) => void} [shown] gets which rows are drawn now, old and new ones
 * @property {(height: number) => HTMLElement} space makes the element that fills the space of invisible rows
 */

export class VirtualRows {
  /** @param {VirtualOptions} options @param {AbortSignal} signal */
  constructor(options, signal) {
    this.options = options;
    this.total = 0;
    this.first = 0; // the row at the top
    this.drawn = "";
    this.kept = 0; // number of the row of the first element of `nodes`
    /** @type {Node[]} */
    this.nodes = []; // of the rows that are drawn
    this.isStale = false; // the rows that are drawn may show what was true earlier
    this.isHeld = false; // a mouse button is down on a row, which must still exist when the button goes up: otherwise there is no click
    this.above = options.space(0);
    this.below = options.space(0);
    options.scroller.addEventListener("scroll", () => this.update(), { passive: true, signal });
    this.pinned = { top: -1, first: 0 }; // the row that was at the top when the rows were drawn there
    options.rows.addEventListener("pointerdown", (event) => { this.isHeld = event.button === 0; }, { signal });
    for (const end of ["pointerup", "pointercancel", "contextmenu", "blur"]) window.addEventListener(end, () => setTimeout(() => this.release()), { signal });
    const watcher = new ResizeObserver(() => this.update());
    watcher.observe(options.scroller);
    signal.addEventListener("abort", () => watcher.disconnect());
  }

  /** Pixels of all rows, at most `MOST_HEIGHT`. */
  get height() {
    return Math.min(this.total * this.options.height, MOST_HEIGHT);
  }

  /** Rows in sight. */
  get page() {
    return Math.max(1, Math.floor(this.options.scroller.clientHeight / this.options.height));
  }

  /**
   * Draw again, whether rows have moved or not. In a row with a `data-id`, cells that look as before stay, with the
   * selection in them.
   * @param {number} [total] how many rows there are now
   */
  refresh(total = this.total) {
    this.total = total;
    this.drawn = "";
    this.isStale = true;
    this.update();
  }

  /**
   * Add rows at the end. Those that are drawn stay, with the focus and the selection in them, and in their places.
   * @param {number} total
   */
  grow(total) {
    if (total < this.total) return this.refresh(total);
    this.total = total;
    this.drawn = "";
    if (!this.isHeld) this.pin();
    this.update();
  }

  /** Keep the first row in its place among more rows, where a pixel stands for several rows. */
  pin() {
    if (this.pinned.top !== this.options.scroller.scrollTop || !this.isScaled) return;
    this.options.scroller.scrollTop = this.placeOf(this.pinned.first);
    this.pinned.top = this.options.scroller.scrollTop; // the browser rounds it
  }

  /** True when there are so many rows that a pixel stands for several. */
  get isScaled() {
    return this.total * this.options.height > MOST_HEIGHT;
  }

  /** Return how far the scroller is scrolled with a row at its top. @param {number} row */
  placeOf(row) {
    const { scroller, height } = this.options;
    return this.isScaled ? (row / Math.max(1, this.total - this.page)) * (this.height - scroller.clientHeight) : row * height;
  }

  /** Return the rows that are drawn, as elements by their numbers. @returns {[number, Node][]} */
  get shown() {
    return this.nodes.map((node, at) => [this.kept + at, node]);
  }

  /** Draw one row again, if it is drawn at all. @param {number} row */
  redraw(row) {
    const old = this.nodes[row - this.kept];
    if (!old) return;
    if (this.isHeld) return this.refresh();
    const [drawn] = this.options.draw(row, row + 1);
    const node = renewRow(/** @type {Element} */ (old), drawn);
    if (node !== old) /** @type {ChildNode} */ (old).replaceWith(node);
    this.nodes[row - this.kept] = node;
  }

  /** Draw what was put off while a row was held. */
  release() {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.update();
  }

  update() {
    if (this.isHeld) return;
    const { scroller, height } = this.options;
    const { isScaled } = this;
    this.first = Math.max(0, Math.min(this.findTop(), this.total - 1));
    this.pinned = { top: scroller.scrollTop, first: this.first };
    const first = Math.max(0, this.first - OVERSCAN);
    const last = Math.min(this.total, this.first + this.page + 2 + OVERSCAN);
    const drawn = `${first}-${last}`;
    const offset = isScaled ? Math.max(0, scroller.scrollTop - (this.first - first) * height) : first * height;
    if (drawn !== this.drawn || isScaled) this.place(first, last, offset);
    this.drawn = drawn;
  }

  /** Return the row at the top. */
  findTop() {
    const { scroller, height } = this.options;
    if (!this.isScaled) return Math.floor(scroller.scrollTop / height);
    if (scroller.scrollTop === this.pinned.top) return this.pinned.first;
    const share = Math.min(1, scroller.scrollTop / Math.max(1, this.height - scroller.clientHeight));
    return Math.round(share * Math.max(0, this.total - this.page));
  }

  /** @param {number} first @param {number} last @param {number} offset pixels above the first row */
  place(first, last, offset) {
    const { height, shown } = this.options;
    const used = offset + (last - first) * height;
    setHeight(this.above, offset);
    setHeight(this.below, Math.max(0, this.height - used));
    shown?.(first, last);
    const end = this.kept + this.nodes.length;
    if (this.isStale || first >= end || last <= this.kept) this.renew(this.options.draw(first, last));
    else this.move(first, last, end);
    this.kept = first;
    this.isStale = false;
  }

  /** Draw all rows that are in sight. @param {Node[]} nodes */
  renew(nodes) {
    const { rows } = this.options;
    if (!this.above.parentNode) rows.replaceChildren(this.above, this.below);
    /** @type {Map<string, Element>} */
    const former = new Map();
    for (const node of this.nodes) if (idOf(node)) former.set(idOf(node), /** @type {Element} */ (node));
    const renewed = nodes.map((node) => renewRow(former.get(idOf(node)), node));
    for (const node of this.nodes) if (!renewed.includes(node)) /** @type {ChildNode} */ (node).remove();
    let next = this.above.nextSibling;
    for (const node of renewed) {
      if (node === next) next = next.nextSibling;
      else rows.insertBefore(node, next);
    }
    this.nodes = renewed;
  }

  /** Draw the rows that come into sight, and let those stay that are in sight already. @param {number} first @param {number} last @param {number} end */
  move(first, last, end) {
    const { draw } = this.options;
    const before = first < this.kept ? draw(first, this.kept) : [];
    const behind = last > end ? draw(end, last) : [];
    const stays = this.nodes.slice(Math.max(0, first - this.kept), last - this.kept);
    for (const node of this.nodes.slice(0, Math.max(0, first - this.kept))) /** @type {ChildNode} */ (node).remove();
    for (const node of this.nodes.slice(last - this.kept)) /** @type {ChildNode} */ (node).remove();
    this.above.after(...before);
    this.below.before(...behind);
    this.nodes = [...before, ...stays, ...behind];
  }

  /** Scroll until a row is in sight. @param {number} row */
  show(row) {
    if (row >= this.first + 1 && row < this.first + this.page - 1) return;
    this.options.scroller.scrollTop = this.placeOf(Math.max(0, row - Math.floor(this.page / 2)));
    this.update();
  }

  /** True when the last row is in sight. */
  get isAtEnd() {
    const { scroller, height } = this.options;
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2 * height;
  }

  showEnd() {
    this.pinned.top = -1;
    this.options.scroller.scrollTop = this.options.scroller.scrollHeight;
    this.update();
  }
}

/** Return what a row shows: the ID of an experiment; empty: it has none. @param {Node | undefined} node */
function idOf(node) {
  return node instanceof HTMLElement ? (node.getAttribute("data-id") ?? "") : "";
}

/**
 * Return the former row with the cells of the new one that look different; the new row, if it has another number of cells.
 * @param {Element | undefined} former @param {Node} node
 */
function renewRow(former, node) {
  const cells = [...node.childNodes];
  if (former?.childNodes.length !== cells.length) return node;
  const row = /** @type {Element} */ (node);
  for (const name of former.getAttributeNames()) if (!row.hasAttribute(name)) former.removeAttribute(name);
  for (const name of row.getAttributeNames()) former.setAttribute(name, row.getAttribute(name) ?? "");
  [...former.childNodes].forEach((cell, at) => { if (!looksLike(cell, cells[at])) cell.replaceWith(cells[at]); });
  return former;
}

/** True when a cell looks like another one. A box that is checked is equal to one that is not. @param {Node} cell @param {Node} other */
function looksLike(cell, other) {
  return cell.isEqualNode(other) && !(cell instanceof HTMLElement && cell.querySelector("input"));
}

/** @param {HTMLElement} element @param {number} height */
function setHeight(element, height) {
  element.style.height = `${height}px`;
}
