// @ts-check
/** Elements of the page. Text always becomes a text node: this module never parses HTML. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Return a new element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [fields] attributes; `on...` are listeners, `false` and `null` are left out
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, fields = {}, ...children) {
  const element = document.createElement(tag);
  setFields(element, fields);
  element.append(...listNodes(children));
  return element;
}

/**
 * Return a new element of an SVG picture.
 * @param {string} tag
 * @param {Record<string, unknown>} [fields]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function draw(tag, fields = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", tag));
  setFields(element, fields);
  element.append(...listNodes(children));
  return element;
}

/**
 * Replace everything in an element. The focus goes to what takes the place of the element that had it, and what was
 * scrolled stays so.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const focused = document.activeElement;
  const isInside = focused !== null && focused !== element && element.contains(focused);
  const scrolled = [...element.querySelectorAll('[tabindex="0"]')].filter((one) => one.scrollLeft || one.scrollTop).map((one) => ({ one, left: one.scrollLeft, top: one.scrollTop }));
  element.replaceChildren(...listNodes(children));
  for (const { one, left, top } of scrolled) {
    const found = findSame(element, one);
    if (found) [found.scrollLeft, found.scrollTop] = [left, top];
  }
  if (isInside) /** @type {HTMLElement | undefined} */ (findSame(element, focused))?.focus({ preventScroll: true });
}

/** Return the element in another one that is for the same as a former one. @param {Element} element @param {Element} former */
function findSame(element, former) {
  return [...element.querySelectorAll(former.tagName.toLowerCase())].find((one) => identify(one) === identify(former));
}

/** Return a key that identifies an element even after it is drawn again. @param {Element} element */
function identify(element) {
  const names = ["data-action", "data-host", "aria-label", "href"].map((name) => element.getAttribute(name));
  return names.find((name) => name !== null) ?? element.textContent;
}

/**
 * Set the text of an element if it differs: an unchanged node keeps a selection in it.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {Record<string, unknown>} fields */
function setFields(element, fields) {
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "checked" || name === "value") Reflect.set(element, name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function listNodes(children) {
  /** @type {(Node | string)[]} */
  const found = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    found.push(child instanceof Node ? child : String(child));
  }
  return found;
}
