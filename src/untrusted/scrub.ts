import { CREDENTIALS, ENDINGS, HEADERS, isAscii, isSecretName, unmasked, WORDS } from './secret-names.ts';

/*
 * Removes credentials from text that is about to be stored, logged or shown. Errors quote connection strings, headers and request
 * bodies; removing a harmless word costs less than storing a password.
 *
 * A repetition whose match may still fail after it is bounded, or cannot begin again inside of itself, so that no text takes
 * quadratic time.
 */

/** Stands for what was removed. */
export const SECRET = '***';

/** Between a name and its value: `password: x`, `"password":"x"`, `\"password\":\"x\"`, `'password' => 'x'`. */
const assigned = String.raw`\\{0,4}["'”’]?\s{0,8}(?:[=:]{1,2}>?|[：＝]|%3D|\\{1,4}u003d)\s{0,8}\\{0,4}`;
/** The same in pairs: `['password', 'x']`, `{ name: 'password', stringValue: 'x' }`, `key="password" value="x"`. */
const paired = [
  String.raw`\\{0,4}["']\s{0,8},\s{0,8}(?:\\{0,4}["']?\w{0,16}val(?:ue)?s?\\{0,4}["']?\s{0,8}[=:]\s{0,8}\\{0,4}|\\{0,4}(?=["'[{]))`,
  String.raw`\\{0,4}["']\s{1,8}val(?:ue)?\s{0,8}=\s{0,8}\\{0,4}`,
].join('|');
/** What is no credential: that there is none, or what was expected in place of one, in errors of our own. */
const answer = `(?:true|false|null|undefined|expected)(?:[\\s,;)}\\]"'&]|$)`;
const separator = `(?:${assigned}|${paired})(?!${answer})`;
/** To the closing quote or bracket, or to the end. Behind a backslash, a quote closes that is itself behind one. */
const quoted = String.raw`(?<=\\)"[^"]*"?|"(?:[^"\\]|\\[\s\S])*"?|'(?:[^'\\]|\\[\s\S])*'?|“[^”]*”?|\[[^\]]*\]?|\{[^}]*\}?`;
/** TOML and Python: to the next three quotes. YAML: what follows and is indented, or empty. */
const block = String.raw`(?<quotes>"{3}|'{3})[\s\S]*?(?:\k<quotes>|$)|[|>][-+\d]{0,2}[ \t]{0,8}\r?\n(?<indent>[ \t]+)[^\r\n]*(?:\r?\n(?:\k<indent>[^\r\n]*|(?=\r?\n)))*`;
const enclosed = `${block}|${quoted}`;
/** A bare one goes to its next delimiter. */
const value = String.raw`(?:${enclosed}|[^\s&,;)}\]"']+)`;
/** `tokens: 4096` is a count. */
const plural = `(?:s(?!${assigned}\\d{1,15}(?:[\\s,;)}\\]"'&.]|$)))?`;

/** Tokens known by their shape: JWT, Stripe, GitHub, GitLab, AWS, Slack, Google, npm, OpenAI and Anthropic, SendGrid, Vault. */
const tokenShapes = [
  String.raw`eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?`,
  String.raw`[srp]k_(?:live|test)_\w{8,}`,
  String.raw`gh[opsur]_\w{20,}|github_pat_\w{20,}`,
  'A(?:KIA|SIA)[A-Z0-9]{16}',
  String.raw`xox[abeprs]-[\w-]{8,}`,
  String.raw`AIza[\w-]{30,}|ya29\.[\w-]{20,}`,
  String.raw`(?:glpat|sk)-[\w-]{20,}|npm_\w{30,}`,
  String.raw`SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}`,
].join('|');

const lineEnd = String.raw`(?:\r?\n|(?:\\r)?\\n)`;
/** In a form of several parts, between the name of a part and its value: more headers, and an empty line. */
const headersOfPart = String.raw`\\?"[^\r\n"\\]{0,128}(?:${lineEnd}[\w-]{1,32}:[^\r\n"\\]{1,128}){0,3}${lineEnd}${lineEnd}`;

const privateKey = /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[\s\S]*?(?:-----END [A-Z\d ]{0,60}-----|$)/g;

const rules: readonly (readonly [RegExp, string])[] = [
  [privateKey, SECRET],
  // To the closing quote, or to the end of the line.
  [new RegExp(`(${HEADERS})(${plural}${ENDINGS}${separator})(?:${enclosed}|[^\\r\\n]+)`, 'gi'), `$1$2${SECRET}`],
  // user:password@. A password may hold unescaped / and @ (that is how a URL comes to be quoted in an
  // error), so this reaches for the last @; what follows the colon must not be just a port.
  [/(:\/\/)[^\s:/?#@]{0,256}:(?!\d{1,5}(?:[/?#\s]|$))(?:(?!:\/\/)[^\s"'<>]){0,1024}@/g, `$1${SECRET}@`],
  [/(:\/\/)[^\s:/?#@]{1,1024}@/g, `$1${SECRET}@`],
  [/\b(bearer|basic)(\s{1,8})[\w.~+/=-]{8,}/gi, `$1$2${SECRET}`],
  [new RegExp(`(${CREDENTIALS})(${plural}${ENDINGS}${separator})${value}`, 'gi'), `$1$2${SECRET}`],
  // Arguments of a command that failed, elements of XML, and fields of forms, which end before a line that begins with two dashes.
  [new RegExp(`((?<![\\w-])--[\\w-]{0,32}(?:${CREDENTIALS})s?\\s{1,8})(?!-)${value}`, 'gi'), `$1${SECRET}`],
  [
    new RegExp(
      `(<[\\w:.-]{0,64}?(?:${CREDENTIALS})s?(?:\\s[^<>]{0,128})?>)(?:<!\\[CDATA\\[[\\s\\S]*?(?:\\]\\]>|$)|[^<>]{1,1024}(?=</))`,
      'gi',
    ),
    `$1${SECRET}`,
  ],
  [
    new RegExp(
      `(name=\\\\?"[\\w.-]{0,64}?(?:${CREDENTIALS})s?${ENDINGS}${headersOfPart})[\\s\\S]*?(?=${lineEnd}--|$)`,
      'gi',
    ),
    `$1${SECRET}`,
  ],
  [new RegExp(String.raw`(?<![\w-])(?:${tokenShapes})`, 'g'), SECRET],
];

/** These words are common in prose (`auth: failed`, `sig: 11`): only before `=`, and before what is quoted or a list. */
const words = new RegExp(`(${WORDS})(?:=(?!>)|${separator}(?=["'“[]))(?=[^\\s&,;)}\\]])`, 'gi');
const itsValue = new RegExp(value, 'y');
const endOfName = /[\w.-]{0,32}$/;

/** What every rule needs at least. Most texts are short, and have nothing of it: they are read once, and not by every rule. */
const needed = /[=:：＝"'”’]|%3d|u003d|--|<\/|(?:bearer|basic)\s|[\w-]{11}/i;

/** A longer text is not read, and so is removed: patterns that remember every character of it exhaust their stack at some 10 Mi. */
const LONGEST = 1_048_576;

/** A text without the credentials in it. */
export function scrub(text: string): string {
  if (text.length > LONGEST) return SECRET;
  if (!needed.test(text)) return text;
  const plain = isAscii(text) && !text.includes('\\u') ? text : withPlainNames(text);
  return withoutWords(rules.reduce((result, [rule, replacement]) => result.replace(rule, replacement), plain));
}

/** The value of a name that is harmless (`spin=[pin="x"]`) is not passed over, because there may be a credential in it. */
function withoutWords(text: string): string {
  let [shown, end] = ['', 0];
  words.lastIndex = 0;
  for (let found = words.exec(text); found !== null; found = words.exec(text)) {
    const { index } = found;
    const [before] = endOfName.exec(text.slice(Math.max(end, index - 32), index)) as RegExpExecArray;
    if (!isSecretName(`${before}${found[1]}`)) continue;
    itsValue.lastIndex = words.lastIndex;
    const [hidden] = itsValue.exec(text) as RegExpExecArray;
    shown += `${text.slice(end, words.lastIndex)}${SECRET}`;
    words.lastIndex += hidden.length;
    end = words.lastIndex;
  }
  return shown + text.slice(end);
}

/** A name in letters that only look like those of a credential's, or in escapes of JSON, becomes that name, for the rules to find. */
function withPlainNames(text: string): string {
  return text.replace(/(?:[\p{L}\p{N}\p{M}\p{Cf}\p{DI}_-]|\\{1,4}u[\da-fA-F]{4})+/gu, (name) => {
    const letters = name.replace(/\\+u(.{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
    if (letters === name && isAscii(name)) return name;
    const plain = unmasked(letters);
    return isSecretName(plain) ? plain : name;
  });
}

/** An address that a person typed, perhaps wrongly: whatever is before its last @ may be a password. */
export function scrubAddress(address: string): string {
  return scrub(address.replace(/^([a-z][a-z\d+.-]*:)?(\/*).*@/is, `$1$2${SECRET}@`));
}
