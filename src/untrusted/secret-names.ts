/*
 * Which names stand for credentials. One rule for fields of data (payloads, fields of logs) and for names in texts (messages, stacks).
 * A name is judged by its end: `dbPassword` and `aws_secret_access_key` are credentials, `passwordResetAt` and `tokenizer` are not.
 *
 * The lists are sources of patterns; a space in them is any separator of words, or none.
 */

const pattern = (...names: string[]): string => names.join('|').replaceAll(' ', '[-_. ]?');

/** Headers whose whole value is secret. */
export const HEADERS: string = pattern('authorization', '(?:set )?cookie');

export const CREDENTIALS: string = pattern(
  'pass (?:word|wort|wd|phrase|code)',
  'pwd',
  'secret',
  'token',
  'jwt',
  'credential',
  '(?:auth|authorization|mfa|otp|recovery|verification) code',
  '(?:code|oauth) verifier',
  'sess(?:ion)? id',
  '(?:access|account|api|auth|cipher|client|deploy|encryption|hmac|license|master|private|secret|service|session|shared|signing|ssh|storage|subscription|tls) key(?: id)?',
  'credit card',
  'card number',
);

/** Whole words with other meanings, too (`auth: failed`, `session: { room }`): credentials where the value can be one. */
export const WORDS: string = pattern(
  'pass',
  'auth',
  'sig',
  'signature',
  'session',
  'sid',
  'pin',
  't?otp',
  'bearer',
  'cv[vc]',
);

/** What may follow a name without changing what it stands for: `passwordHash`, `secret_key_base`, `password2`. */
export const ENDINGS: string = `(?:${pattern(' (?:hash|digest|value|text|plain|raw|hex|base|base64|b64|pem|encrypted|confirm(?:ation)?|repeat|new|old|header|string|\\d{1,4})')}){0,2}`;

const credential = new RegExp(`(?:${HEADERS}|${CREDENTIALS})(s?)${ENDINGS}$`);
const word = new RegExp(`(?:^|-)(?:${WORDS})(?:-?\\d{1,4})?$`);

/** Whether the value of a field of this name may be a credential. */
export function isSecretName(name: string): boolean {
  const plain = plainName(name);
  return credential.test(plain.toLowerCase()) || isSecretWord(plain);
}

/** Whether this value of a field of this name is a credential. */
export function isSecretField(name: string, value: unknown): boolean {
  // These are answers about a credential: `hasPassword: true`, `token: null`.
  if (value === null || value === undefined || typeof value === 'boolean') return false;
  const plain = plainName(name);
  const found = credential.exec(plain.toLowerCase());
  // `tokens: 4096` is a count.
  if (found !== null) return found[1] === '' || typeof value !== 'number';
  return (typeof value !== 'object' || Array.isArray(value)) && isSecretWord(plain);
}

function isSecretWord(plain: string): boolean {
  return word.test(
    plain
      .replace(/([a-z\d])([A-Z])/g, '$1-$2')
      .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
      .toLowerCase(),
  );
}

/** A name as it is compared: letters that look alike are one, and everything between words is a dash. */
export function plainName(name: string): string {
  return unmasked(name)
    .replace(/[^A-Za-z\d]+/g, '-')
    .replace(/^-|-$/g, '');
}

/** Cyrillic, then Greek; capitals, then small letters. */
const LOOK_ALIKE = 'АВЕКМНОРСТУХІЅЈаеорсухіѕјкԁһԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυı';
const LATIN = 'ABEKMHOPCTYXISJaeopcyxisjkdhwABEZHIKMNOPTYXaeikvoptui';
const likes: ReadonlyMap<string, string> = new Map([...LOOK_ALIKE].map((letter, i) => [letter, LATIN.charAt(i)]));
const masked = new RegExp(`[${LOOK_ALIKE}]`, 'g');

/** Text in plain letters: full-width and other forms, accents, invisible characters and letters of other alphabets that look the same. */
export function unmasked(text: string): string {
  if (isAscii(text)) return text;
  return text
    .normalize('NFKD')
    .replace(/[\p{M}\p{Cf}\p{DI}]+/gu, '')
    .replace(masked, (letter) => likes.get(letter) ?? letter);
}

export function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}
