// @ts-check
/** The messages of a two-way stream into a job, as `riseml/base/stream_messages.py` has them: a byte for the kind, then fields. */

const KIND = { INPUT: 0, OUTPUT: 1, ERRORS: 2, END: 3, GRANT: 4, WINDOW: 5, EXIT: 6, FAILURE: 7, COMMAND: 8, READY: 9 };
export const WINDOW = 256 * 1024; // bytes of one direction that a sender may send before the receiver grants more
export const LONGEST_PIECE = 64 * 1024; // bytes of content in one message

/**
 * @typedef {{kind: "piece", content: Uint8Array<ArrayBuffer>} | {kind: "end"} | {kind: "grant", amount: number}
 *   | {kind: "exit", code: number} | {kind: "failure", message: string, hint: string | null} | {kind: "ready"}} StreamMessage
 */

/** @param {number} rows @param {number} columns @returns {Uint8Array<ArrayBuffer>} asks for a shell on a terminal */
export function encodeShell(rows, columns) {
  const order = { command: [], terminal: { rows, columns }, term: "xterm-256color" };
  return join(KIND.COMMAND, new TextEncoder().encode(JSON.stringify(order)));
}

/** @param {Uint8Array} content @returns {Uint8Array<ArrayBuffer>} */
export function encodeInput(content) {
  return join(KIND.INPUT, content);
}

/** @param {number} amount @returns {Uint8Array<ArrayBuffer>} lets the server send this many bytes more */
export function encodeGrant(amount) {
  return join(KIND.GRANT, new Uint8Array([amount >>> 24, amount >>> 16, amount >>> 8, amount]));
}

/** @param {number} rows @param {number} columns @returns {Uint8Array<ArrayBuffer>} */
export function encodeSize(rows, columns) {
  return join(KIND.WINDOW, new Uint8Array([rows >>> 8, rows, columns >>> 8, columns]));
}

/** @param {ArrayBuffer} data @returns {StreamMessage} */
export function decodeMessage(data) {
  const view = new DataView(data);
  const kind = view.getUint8(0);
  if (kind === KIND.OUTPUT || kind === KIND.ERRORS) return { kind: "piece", content: new Uint8Array(data, 1) };
  if (kind === KIND.GRANT) return { kind: "grant", amount: view.getUint32(1) };
  if (kind === KIND.EXIT) return { kind: "exit", code: view.getInt32(1) };
  if (kind === KIND.READY) return { kind: "ready" };
  if (kind === KIND.END) return { kind: "end" };
  if (kind !== KIND.FAILURE) throw new Error(`The server sent a message of kind ${kind}.`);
  const { message, hint } = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 1)));
  return { kind: "failure", message: String(message), hint: hint === null ? null : String(hint) };
}

/** @param {number} kind @param {Uint8Array} fields */
function join(kind, fields) {
  const message = new Uint8Array(fields.length + 1);
  message[0] = kind;
  message.set(fields, 1);
  return message;
}
