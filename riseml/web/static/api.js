// @ts-check
/** Requests to the server. Each has a proof: an HMAC of it with the page key, which only this address knows. */

import { noteDate } from "./clock.js";

/** @import { AnswerTo } from "../wire.js" */

/** @typedef {string | number | boolean | null | undefined} QueryValue */
/** @typedef {Record<string, QueryValue | QueryValue[]>} Query an array is repeated; null is left out */

const STORED = "riseml-session"; // `<session>.<page key>`
const TRIES = 4; // of a request: browsers drop pending ones when a network of the machine changes
const FIRST_PAUSE = 80; // milliseconds before the second try
const LATER = globalThis.location?.protocol === "https:" ? "This page goes on when it does." : "Any riseml command starts it again; this page goes on then.";
const encoder = new TextEncoder();
let challenge = ""; // of the server process that answers
let keyText = ""; // of the page key; another page of this browser may open a new session, and store another key
/** @type {Promise<CryptoKey> | null} */
let pageKey = null;

/** A team's server answers over TLS, and its users log in; the server of one user answers at 127.0.0.1 without. */
export const isTeam = globalThis.location?.protocol === "https:";

/** The server refused a request, or did not answer. */
export class ApiError extends Error {
  /** @param {string} message @param {string} hint @param {number} status 0: no answer came */
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/**
 * Store the session that follows `#` in the address, and remove it from the address. Any web page can write an address:
 * the stored session stays, unless the server accepts the new one.
 */
export async function takeSession() {
  if (!location.hash.startsWith("#session=")) return;
  const session = location.hash.slice("#session=".length);
  try {
    await request("GET", makeUrl("/server", {}), { key: findKey(session) });
    localStorage.setItem(STORED, session);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error; // the session stays in the address for the next try
  }
  history.replaceState(null, "", location.pathname + location.search);
}

/** Return the identity of this browser's session; empty: it has none. */
export function findSession() {
  return (localStorage.getItem(STORED) ?? "").split(".")[0];
}

/** Forget the session, which has ended. */
export function forgetSession() {
  localStorage.removeItem(STORED);
}

/** Return how users of a team's server log in. @returns {Promise<import("../wire.js").LoginOffers>} */
export async function readOffers() {
  return (await askLogin("GET", "/v1/login")).json();
}

/** Log in with a key: the server makes a session of this browser. @param {string} key */
export async function logIn(key) {
  const response = await askLogin("POST", "/v1/login/key", JSON.stringify({ key }));
  localStorage.setItem(STORED, (await response.json()).session);
}

/** Send a request that needs no session. @param {string} method @param {string} path @param {string} [body] */
async function askLogin(method, path, body) {
  const headers = /** @type {Record<string, string>} */ (body ? { "Content-Type": "application/json" } : {});
  const response = await fetch(path, { method, body, headers, cache: "no-store", redirect: "error" }).catch(() => null);
  if (!response) throw new ApiError("The server does not answer.", LATER, 0);
  if (!response.ok) throw await readRefusal(response);
  return response;
}

/**
 * Return an answer of the server.
 * @template {string} Path
 * @param {Path} path below /api/v1, such as `/experiments`
 * @param {Query} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<AnswerTo<`GET ${Path}`>>}
 */
export async function get(path, query = {}, signal) {
  return (await getResponse(path, query, signal)).json();
}

/**
 * Return a response whose body the caller reads.
 * @param {string} path
 * @param {Query} query
 * @param {AbortSignal} [signal]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<Response>}
 */
export function getResponse(path, query, signal, headers) {
  return request("GET", makeUrl(path, query), { signal, headers });
}

/**
 * Send a request, and return the answer. The request is repeated when no answer comes, so it must be idempotent.
 * @template {string} Path
 * @param {Path} path
 * @param {object} [body]
 * @returns {Promise<AnswerTo<`POST ${Path}`>>}
 */
export async function post(path, body) {
  const options = body === undefined ? {} : { body: JSON.stringify(body), type: "application/json" };
  return (await request("POST", makeUrl(path, {}), options)).json();
}

/**
 * Return a response that does not end, such as the feed of changes.
 * @param {string} path
 * @param {Record<string, string>} headers
 * @param {AbortSignal} signal
 */
export function stream(path, headers, signal) {
  return request("GET", makeUrl(path, {}), { headers, signal });
}

/**
 * Return a WebSocket of the server. No page can add a header to its handshake, so the proof is the name of a protocol.
 * @param {string} path
 * @returns {Promise<WebSocket>}
 */
export async function openSocket(path) {
  await get("/server"); // the challenge of the process that answers now
  const url = makeUrl(path, {});
  const proof = await prove(`CONNECT ${url.pathname}`); // of one handshake
  url.protocol = isTeam ? "wss:" : "ws:";
  const socket = new WebSocket(url, ["riseml", `riseml-proof.${proof}`]);
  socket.binaryType = "arraybuffer";
  return socket;
}

/** @param {string} path @param {Query} query */
function makeUrl(path, query) {
  const url = new URL(`/api/v1${path}`, location.origin);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined) url.searchParams.append(name, String(one));
    }
  }
  return url;
}

/**
 * @param {string} method
 * @param {URL} url
 * @param {{body?: string, type?: string, headers?: Record<string, string>, signal?: AbortSignal, key?: string}} options
 */
async function request(method, url, options) {
  const known = challenge; // another request may receive a new challenge meanwhile
  let response = await send(method, url, options);
  const asked = response.headers.get("x-riseml-challenge");
  if (response.status === 401 && asked && asked !== known) {
    challenge = asked;
    response = await send(method, url, options);
  }
  if (!response.ok) throw await readRefusal(response);
  return response;
}

/**
 * @param {string} method
 * @param {URL} url
 * @param {{body?: string, type?: string, headers?: Record<string, string>, signal?: AbortSignal, key?: string}} options
 */
async function send(method, url, { body, type, headers = {}, signal, key }) {
  const digest = body ? `\n${writeHex(await crypto.subtle.digest("SHA-256", encoder.encode(body)))}` : "";
  for (let tries = 1; ; tries += 1) {
    try {
      const proof = await prove(`${method} ${url.pathname}${url.search}${digest}`, key); // the server takes each once
      const fields = { ...headers, "X-Riseml-Proof": proof };
      if (type) Object.assign(fields, { "Content-Type": type });
      const response = await fetch(url, { method, body, headers: fields, signal, cache: "no-store", redirect: "error" });
      noteDate(response.headers.get("date"));
      return response;
    } catch (error) {
      if (signal?.aborted) throw error;
      if (tries === TRIES) throw new ApiError("The server does not answer.", LATER, 0);
    }
    await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE * 2 ** tries));
  }
}

/** @param {string} session @returns {string} its page key */
function findKey(session) {
  return session.split(".")[1] ?? "";
}

/** @param {string} text @param {string} [key] the page key @returns {Promise<string>} */
async function prove(text, key = findKey(localStorage.getItem(STORED) ?? "")) {
  if (!key) return "";
  if (key !== keyText) pageKey = null;
  keyText = key;
  pageKey ??= crypto.subtle.importKey("raw", encoder.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const nonce = writeHex(crypto.getRandomValues(new Uint8Array(16)).buffer);
  const signed = encoder.encode(`${challenge}\n${nonce}\n${text}`);
  return `${nonce}.${writeHex(await crypto.subtle.sign("HMAC", await pageKey, signed))}`;
}

/** @param {ArrayBuffer} bytes @returns {string} */
function writeHex(bytes) {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Response} response */
async function readRefusal(response) {
  const body = await response.json().catch(() => null);
  const found = body?.error ?? {};
  return new ApiError(found.message ?? `The server answered ${response.status}.`, found.hint ?? "", response.status);
}
