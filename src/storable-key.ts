import { byteLength, sha256 } from './bytes.ts';

/** Longer keys are hashed: an index holds each one several times. */
const LONGEST_KEY_BYTES = 200;

/** A key that a function of the input has chosen, as it is stored: its hash where it is long or no database would hold it. */
export function storableKey(key: string): string {
  return isStorable(key) ? key : hashOf(key);
}

/** Whether a key is as `storableKey` answers it. */
export function isStoredKey(key: string): boolean {
  return isStorable(key) || /^sha256:[0-9a-f]{64}$/.test(key);
}

/** A key is a stranger's text. One that looks like a hash could otherwise pass for another key's. */
function isStorable(key: string): boolean {
  if (!key.isWellFormed() || /\p{Cc}/u.test(key) || key.startsWith('sha256:')) return false;
  return byteLength(key) <= LONGEST_KEY_BYTES;
}

/** UTF-8 has no lone surrogates: all of them would become the same character, and different keys one. */
function hashOf(key: string): string {
  return `sha256:${sha256(key.isWellFormed() ? key : inUtf16(key))}`;
}

/** Little-endian, as databases of earlier versions have it. */
function inUtf16(key: string): Uint8Array {
  return Uint8Array.from({ length: 2 * key.length }, (_, at) => key.charCodeAt(at >> 1) >> (8 * (at & 1)));
}
