/*
 * What a stored value must look like. A sample says it: a number stands for any finite number that is not negative, an
 * array for one of the same length, an object for one with the same keys.
 */

const LARGEST = 1e15;
/** No list of a gate is longer; a hostile one would be read in full every time. */
const LONGEST_LIST = 16;

class Matcher {
  readonly matches: (value: unknown) => boolean;

  constructor(matches: (value: unknown) => boolean) {
    this.matches = matches;
  }
}

export function oneOf(...values: readonly unknown[]): Matcher {
  return new Matcher((value) => values.includes(value));
}

export function nullOr(sample: unknown): Matcher {
  return new Matcher((value) => value === null || hasShape(value, sample));
}

export function listOf(sample: unknown): Matcher {
  return new Matcher(
    (value) => Array.isArray(value) && value.length <= LONGEST_LIST && value.every((entry) => hasShape(entry, sample)),
  );
}

/** A number that may also be negative. */
export function signed(): Matcher {
  return new Matcher((value) => typeof value === 'number' && Math.abs(value) <= LARGEST);
}

export function hasShape(value: unknown, sample: unknown): boolean {
  if (sample instanceof Matcher) return sample.matches(value);
  if (typeof sample === 'number') return typeof value === 'number' && value >= 0 && value <= LARGEST;
  if (typeof value !== 'object' || value === null || Array.isArray(value) !== Array.isArray(sample)) return false;
  const keys = Object.keys(sample as object);
  if (Object.keys(value).length !== keys.length) return false;
  return keys.every(
    (key) => Object.hasOwn(value, key) && hasShape(Reflect.get(value, key), Reflect.get(sample as object, key)),
  );
}
