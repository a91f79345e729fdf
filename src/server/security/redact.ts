import { isDeepStrictEqual } from 'node:util';
import { scrub } from '../../untrusted/scrub.ts';
import { type IsSecret, withoutSecrets } from '../../untrusted/secret-fields.ts';
import { isSecretField, plainName } from '../../untrusted/secret-names.ts';

/* What those that only read see of payloads: all of it but credentials, found by the rules for errors and logs. */

const HIDDEN = '[redacted]';
/** Deeper than that, nothing is shown at all. */
const DEEPEST = 64;

export type Redact = (value: unknown) => unknown;

/** Copies JSON data without credentials, and without the values of these fields, whatever they hold. */
export function redactor(fields: readonly string[]): Redact {
  const own = new Set(fields.map(compared));
  const isSecret: IsSecret = (name, value) => own.has(compared(name)) || isSecretField(name, value);
  const copy = (value: unknown, levels: number): unknown => {
    if (typeof value === 'string') return copyText(value, levels);
    if (typeof value !== 'object' || value === null) return value;
    if (levels <= 0) return HIDDEN;
    const shown = withoutSecrets(value, HIDDEN, isSecret);
    if (Array.isArray(shown)) return shown.map((member) => copy(member, levels - 1));
    return Object.fromEntries(Object.entries(shown).map(([key, member]) => [scrub(key), copy(member, levels - 1)]));
  };
  /** JSON inside of a text is data as well. It stays as it is written when nothing in it is hidden. */
  const copyText = (text: string, levels: number): string => {
    const data = dataIn(text);
    if (data === null) return scrub(text);
    const shown = copy(data, levels - 1);
    return isDeepStrictEqual(shown, data) ? text : JSON.stringify(shown);
  };
  return (value) => copy(value, DEEPEST);
}

function compared(name: string): string {
  return plainName(name).replaceAll('-', '').toLowerCase();
}

/** The list or the object that a text holds; null when it is none. */
function dataIn(text: string): object | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.parse(text) as object;
  } catch {
    return null;
  }
}
