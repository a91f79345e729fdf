/*
 * JSON that carries what the store contract holds and plain JSON loses: maps, sets, lists with a property (`JobList`), and
 * numbers that JSON has no word for. Each travels as an object with one tag. Data of users may have such keys, too: an
 * object with a key that begins with `$` travels as its entries.
 */

const TAG = '$';

export function encode(value: unknown): string {
  return JSON.stringify(value, replace);
}

function replace(_key: string, value: unknown): unknown {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: numberText(value) };
    case 'bigint':
      return { $bigint: value.toString() };
    case 'object':
      return value === null ? null : replaceObject(value);
    default:
      return value;
  }
}

function numberText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

function replaceObject(value: object): unknown {
  if (value instanceof Map) return { $map: [...value] };
  if (value instanceof Set) return { $set: [...value] };
  if (Array.isArray(value)) {
    const { stoppedAfter } = value as { stoppedAfter?: string };
    return stoppedAfter === undefined ? value : { $list: [...value], stoppedAfter };
  }
  return Object.keys(value).some((key) => key.startsWith(TAG)) ? { $object: Object.entries(value) } : value;
}

export function decode(text: string): unknown {
  // A reviver is called for every value: only where there is a tag.
  return text.includes(`"${TAG}`) ? JSON.parse(text, revive) : JSON.parse(text);
}

type Tagged = Partial<Record<'$number' | '$bigint' | '$map' | '$set' | '$list' | '$object' | 'stoppedAfter', unknown>>;

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const tagged = value as Tagged;
  if (typeof tagged.$number === 'string') return Number(tagged.$number);
  if (typeof tagged.$bigint === 'string' && /^-?\d{1,40}$/.test(tagged.$bigint)) return BigInt(tagged.$bigint);
  if (isPairs(tagged.$map)) return new Map(tagged.$map);
  if (Array.isArray(tagged.$set)) return new Set(tagged.$set);
  if (Array.isArray(tagged.$list)) return Object.assign(tagged.$list, { stoppedAfter: tagged.stoppedAfter });
  return isPairs(tagged.$object) ? Object.fromEntries(tagged.$object) : value;
}

function isPairs(value: unknown): value is [string, unknown][] {
  return Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2);
}
