/*
 * Removes credentials from text that is about to be stored. Errors quote connection strings, headers and request bodies;
 * removing a harmless word costs less than storing a password.
 *
 * A repetition whose match may still fail after it is bounded, so that no text takes quadratic time.
 */

/** Stands for what was removed. */
export const SECRET = '***';

/** A quoted value to its closing quote (or the end), or a bare one to its next delimiter. */
const value = String.raw`(?:"[^"]*"?|'[^']*'?|[^\s&,;)}\]"']+)`;
const separator = String.raw`\\{0,4}["']?\s{0,8}[=:]\s{0,8}\\{0,4}`;
const secretNames = [
  'pass(?:word|wd|phrase)',
  'pwd',
  'secret',
  'token',
  'api[-_ ]?key',
  '(?:access|private|account|shared)[-_]?key(?:[-_]?id)?',
  'credentials?',
].join('|');

/** Names too common in prose to be secrets before a colon: `auth: failed`, `sig: 11`. */
const secretParameters = 'pass|auth|sig|signature|session(?:[-_]?id)?';

/** Tokens known by their shape: JWT, Stripe, GitHub, AWS, Slack, Google. */
const tokenShapes = [
  String.raw`eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?`,
  String.raw`[srp]k_(?:live|test)_\w{8,}`,
  String.raw`gh[opsur]_\w{20,}|github_pat_\w{20,}`,
  'A(?:KIA|SIA)[A-Z0-9]{16}',
  String.raw`xox[abeprs]-[\w-]{8,}`,
  String.raw`AIza[\w-]{30,}`,
].join('|');

const secretHeaders = '(?:proxy-)?authorization|(?:set-)?cookie';
const secretName = new RegExp(`(?:${secretNames})$|^(?:${secretParameters}|${secretHeaders})$`, 'i');

/** Whether the value of a field of this name is a credential. */
export function isSecretName(name: string): boolean {
  return secretName.test(name);
}

const rules: readonly (readonly [RegExp, string])[] = [
  // Headers whose whole value is secret: to the closing quote, or to the end of the line.
  [new RegExp(String.raw`\b(${secretHeaders})(${separator})(?:"[^"]*"?|'[^']*'?|[^\r\n]+)`, 'gi'), `$1$2${SECRET}`],
  // user:password@. A password may hold unescaped / and @ (that is how a URL comes to be quoted in an
  // error), so this reaches for the last @; what follows the colon must not be just a port.
  [/(:\/\/)[^\s:/?#@]{0,256}:(?!\d{1,5}(?:[/?#\s]|$))[^\s"'<>]{0,1024}@/g, `$1${SECRET}@`],
  [/(:\/\/)[^\s:/?#@]{1,1024}@/g, `$1${SECRET}@`],
  [/\b(bearer|basic)(\s{1,8})[\w.~+/=-]{8,}/gi, `$1$2${SECRET}`],
  [new RegExp(`(${secretNames})(${separator})${value}`, 'gi'), `$1$2${SECRET}`],
  [new RegExp(String.raw`\b(${secretParameters})(=)${value}`, 'gi'), `$1$2${SECRET}`],
  [new RegExp(String.raw`(?<![\w-])(?:${tokenShapes})`, 'g'), SECRET],
];

export function scrub(text: string): string {
  return rules.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text);
}
