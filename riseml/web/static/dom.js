// @ts-check
/** Elements of the page. Text becomes a text node always: nothing here reads HTML. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Return a new element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [fields] attributes; `on...` are listeners, `false` and `null` are left out
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
 * @param {Record<string, any>} [fields]
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
 * Replace everything in an element. The focus goes to what takes the place of the element that had it.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const focused = document.activeElement;
  const isInside = focused !== null && focused !== element && element.contains(focused);
  element.replaceChildren(...listNodes(children));
  if (!isInside) return;
  const found = [...element.querySelectorAll(focused.tagName.toLowerCase())].find((one) => identify(one) === identify(focused));
  if (found) /** @type {HTMLElement} */ (found).focus({ preventScroll: true });
}

/** Return what an element is for, also when it is drawn again. @param {Element} element */
function identify(element) {
  const names = ["data-action", "data-host", "aria-label", "href"].map((name) => element.getAttribute(name));
  return names.find((name) => name !== null) ?? element.textContent;
}

/**
 * Set the text of an element, if it is another one: an unchanged node keeps a selection in it.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {Record<string, any>} fields */
function setFields(element, fields) {
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "value") /** @type {any} */ (element)[name] = value;
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
