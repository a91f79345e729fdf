/** Fields whose values are not shown, whatever holds them. Compared without case, dashes and underscores. */
export const redactedKeys: readonly string[] = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'clientSecret',
  'token',
  'accessToken',
  'refreshToken',
  'apiKey',
  'privateKey',
  'authorization',
  'cookie',
  'credentials',
  'creditCard',
  'cardNumber',
  'cvv',
];

const HIDDEN = '[redacted]';
/** Deeper than that, nothing is shown at all. */
const DEEPEST = 64;

export type Redact = (value: unknown) => unknown;

/** Copies JSON data without the values of these fields. */
export function redactor(keys: readonly string[]): Redact {
  const hidden = new Set(keys.map(plain));
  const copy = (value: unknown, levels: number): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (levels === 0) return HIDDEN;
    if (Array.isArray(value)) return value.map((member) => copy(member, levels - 1));
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, hidden.has(plain(key)) ? HIDDEN : copy(member, levels - 1)]),
    );
  };
  return (value) => copy(value, DEEPEST);
}

function plain(key: string): string {
  return key.toLowerCase().replace(/[-_]/g, '');
}
