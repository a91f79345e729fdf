/*
 * Bytes and digests of texts, by Node.js where it is there and in script in a browser. Node's modules are asked for when this
 * one is loaded, and not imported: a bundler for browsers must find nothing of Node.js in what the simulator reaches.
 */
import { sha256InScript } from './sha256.ts';

const node = globalThis.process?.getBuiltinModule?.('node:crypto');
const encoder = new TextEncoder();

/** How many bytes a text has in UTF-8. */
export const byteLength: (text: string) => number =
  globalThis.Buffer === undefined ? (text) => encoder.encode(text).length : (text) => Buffer.byteLength(text);

/** In hexadecimal; a text is hashed as UTF-8. */
export const sha256: (data: string | Uint8Array) => string =
  node === undefined
    ? (data) => sha256InScript(typeof data === 'string' ? encoder.encode(data) : data)
    : (data) => node.hash('sha256', data, 'hex');
