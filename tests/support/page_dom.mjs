/** The part of a browser that modules of the web page use, for tests in Node.js: elements, without layout or styles. */

import { Feed } from "../../riseml/web/static/feed.js";

class FakeNode extends EventTarget {
  parentNode = null;

  get isConnected() {
    return this === document.documentElement || Boolean(this.parentNode?.isConnected);
  }

  get siblings() {
    return this.parentNode.childNodes;
  }

  remove() {
    if (!this.parentNode) return;
    if (this.contains?.(document.activeElement)) document.activeElement = document.body;
    this.siblings.splice(this.siblings.indexOf(this), 1);
    this.parentNode = null;
  }

  get nextSibling() {
    return this.siblings[this.siblings.indexOf(this) + 1] ?? null;
  }

  after(...nodes) {
    this.parentNode.insert(this.siblings.indexOf(this) + 1, nodes);
  }

  before(...nodes) {
    this.parentNode.insert(this.siblings.indexOf(this), nodes);
  }

  replaceWith(node) {
    this.before(node);
    this.remove();
  }
}

class FakeText extends FakeNode {
  constructor(data) {
    super();
    this.textContent = data;
  }

  isEqualNode(other) {
    return other instanceof FakeText && this.textContent === other.textContent;
  }
}

export class FakeElement extends FakeNode {
  childNodes = [];
  attributes = new Map();
  style = {};
  scrollTop = 0;
  scrollHeight = 0;
  clientHeight = 0;
  hidden = false;

  constructor(tag) {
    super();
    this.tagName = tag.toUpperCase();
    this.classList = { add: () => {}, remove: () => {} };
  }

  get children() {
    return this.childNodes.filter((one) => one instanceof FakeElement);
  }

  get options() {
    return this.children;
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get textContent() {
    return this.childNodes.map((one) => one.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(text);
  }

  get className() {
    return this.getAttribute("class") ?? "";
  }

  set className(name) {
    this.setAttribute("class", name);
  }

  insert(at, nodes) {
    const made = nodes.map((one) => (one instanceof FakeNode ? one : new FakeText(String(one))));
    for (const one of made) one.remove();
    this.childNodes.splice(at, 0, ...made);
    for (const one of made) one.parentNode = this;
  }

  insertBefore(node, next) {
    this.insert(next ? this.childNodes.indexOf(next) : this.childNodes.length, [node]);
  }

  isEqualNode(other) {
    const [one, two] = [this, other].map((node) => [node.tagName, ...[...(node.attributes ?? [])].map(String).sort()].join());
    const [mine, theirs] = [this, other].map((node) => node.childNodes ?? []);
    return one === two && mine.length === theirs.length && mine.every((child, at) => child.isEqualNode(theirs[at]));
  }

  append(...nodes) {
    this.insert(this.childNodes.length, nodes);
  }

  prepend(...nodes) {
    this.insert(0, nodes);
  }

  replaceChildren(...nodes) {
    for (const one of [...this.childNodes]) one.remove();
    this.append(...nodes);
  }

  contains(other) {
    for (let at = other; at; at = at.parentNode) if (at === this) return true;
    return false;
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  hasAttribute(name) {
    return this.attributes.has(name);
  }

  setAttribute(name, value) {
    this.attributes.set(name, String(value));
  }

  getAttributeNames() {
    return [...this.attributes.keys()];
  }

  removeAttribute(name) {
    this.attributes.delete(name);
  }

  matches(selector) {
    const [, tag, kind, name, value] = /^([a-z0-9]*)(?:\.([a-z-]+))?(?:\[([a-z-]+)(?:="(.*)")?\])?$/.exec(selector);
    const hasValue = value === undefined ? this.hasAttribute(name) : this.getAttribute(name) === value;
    return (!tag || this.tagName === tag.toUpperCase()) && (!kind || this.className.split(" ").includes(kind)) && (!name || hasValue);
  }

  closest(selector) {
    for (let at = this; at; at = at.parentNode) if (at.matches(selector)) return at;
    return null;
  }

  querySelectorAll(selector) {
    return this.children.flatMap((one) => [...(one.matches(selector) ? [one] : []), ...one.querySelectorAll(selector)]);
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  focus() {
    if (this.isConnected) document.activeElement = this;
  }

  click() {
    this.dispatchEvent(new Event("click"));
  }
}

class FakeDocument extends EventTarget {
  hidden = false;
  documentElement = new FakeElement("html");
  title = "";
  body = new FakeElement("body");
  activeElement = this.body;

  createElement(tag) {
    return new FakeElement(tag);
  }

  createElementNS(_, tag) {
    return new FakeElement(tag);
  }

  getElementById(id) {
    return this.documentElement.querySelector(`[id="${id}"]`);
  }

  querySelectorAll(selector) {
    return this.documentElement.querySelectorAll(selector);
  }
}

const setAddress = (_, __, address) => void (globalThis.location = new URL(address ?? location, location));

Object.assign(globalThis, {
  Node: FakeNode,
  HTMLElement: FakeElement,
  document: new FakeDocument(),
  window: new EventTarget(),
  ResizeObserver: class {
    observe() {}
    disconnect() {}
  },
  requestAnimationFrame: (task) => setTimeout(task),
  localStorage: { getItem: () => null, setItem: () => {} },
  history: { state: null, replaceState: setAddress, pushState: setAddress },
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  location: new URL("http://127.0.0.1:8427/"),
});
document.documentElement.append(document.body);
window.scrollTo = () => {};
Object.defineProperty(globalThis.navigator, "locks", { value: { request: (_, task) => task() } });
console.debug = () => {};

/**
 * Answer requests of the page: `answer` gets the path below /api/v1 and the query, and returns what becomes JSON; nothing:
 * the request fails.
 */
export function serve(answer) {
  globalThis.fetch = async (url) => {
    const found = await answer(url.pathname.replace("/api/v1", ""), url.searchParams);
    if (found instanceof Response) return found;
    if (found === undefined) return new Response("", { status: 500 });
    return new Response(JSON.stringify(found), { headers: { "Content-Type": "application/json" } });
  };
}

/** Return a feed that a test speaks through: `say` is an event from the server, `pulse` says that it is still there. */
export function makeFeed() {
  const feed = new Feed();
  const say = (changes) => {
    feed.deliver({ changed: [], grown: [], reset: false, ...changes });
    feed.pulse();
  };
  return Object.assign(feed, { say });
}

/** Load the whole page at its address, and return its `main`, and what says something in the stream of changes. */
export async function openPage() {
  for (const id of ["main", "connection", "theme", "keys"]) {
    const element = new FakeElement(id === "main" ? "main" : "div");
    element.setAttribute("id", id);
    document.body.append(element);
  }
  let stream;
  const body = new ReadableStream({ start: (controller) => void (stream = controller) });
  const say = (changes) => stream.enqueue(new TextEncoder().encode(changes ? `data: ${JSON.stringify(changes)}\n\n` : ": still here\n\n"));
  const answer = globalThis.fetch;
  globalThis.fetch = (url, options) => (url.pathname === "/api/v1/changes" ? Promise.resolve(new Response(body)) : answer(url, options));
  say(null);
  const { go } = await import(new URL("../../riseml/web/static/app.js", import.meta.url).href);
  await settle();
  return { main: document.getElementById("main"), say, go };
}

/** Let all tasks run that wait for answers alone. */
export async function settle() {
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}
