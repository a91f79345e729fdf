import { SECRET, scrub } from './scrub.ts';
import { isSecretField } from './secret-names.ts';

/** Whether this value of a field of this name is not to be shown. */
export type IsSecret = (name: string, value: unknown) => boolean;

/** A text that is longer is no name of a field. */
const LONGEST_NAME = 64;
/** Members that hold a name, and the value of what is named so: `{ name: 'Authorization', value: '...' }`. */
const named = /^(?:name|key|field|header|param(?:eter)?|property|attribute|variable|label|type|id|k|n)$/i;
const valued = /^(?:value|val|values|content|contents|data|text|v)$/i;

/**
 * A list or an object with `hidden` in place of the credentials among its own members; the same one when it has none. What its
 * members hold is left to the caller. Lists may be pairs: `['authorization', '...']`, or several of them one after the other, or
 * the arguments of a command: `['mysql', '--password', '...']`.
 */
export function withoutSecrets(data: object, hidden: string, isSecret: IsSecret = isSecretField): object {
  if (Array.isArray(data)) {
    const isHidden = (member: unknown, i: number): boolean =>
      isName(data[i - 1]) &&
      ((i % 2 === 1 && data.length % 2 === 0) || data[i - 1].startsWith('--')) &&
      isSecret(data[i - 1], member);
    return data.some(isHidden) ? data.map((member, i) => (isHidden(member, i) ? hidden : member)) : data;
  }
  const members = Object.entries(data);
  const names = members.flatMap(([key, member]) => (named.test(key) && isName(member) ? [member] : []));
  const secret = members.filter(
    ([key, member]) => isSecret(key, member) || (valued.test(key) && names.some((name) => isSecret(name, member))),
  );
  return secret.length === 0 ? data : { ...data, ...Object.fromEntries(secret.map(([key]) => [key, hidden])) };
}

/** For JSON.stringify: leaves out the credentials of every level, those in texts as well. */
export function leaveOutSecrets(_: string, value: unknown): unknown {
  if (typeof value === 'string') return scrub(value);
  return typeof value === 'object' && value !== null ? withoutSecrets(value, SECRET) : value;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_NAME;
}
