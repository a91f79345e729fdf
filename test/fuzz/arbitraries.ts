import fc from 'fast-check';
import { isPlainObject } from '../../src/config.ts';
import { endless, monsters, Recipe, refuse, refusing } from './monsters.ts';

/* Bad input, and just enough good input around it to get past the first check: shared by all files here. */

/** Keys that mean something to JavaScript itself. */
export const loadedKey: fc.Arbitrary<string> = fc.constantFrom(
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'toJSON',
  'then',
  'length',
  '',
  '0',
);

/** Text of every kind: unicode beyond the first plane, half surrogate pairs, controls, quotes, long ones. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ maxLength: 12 }),
  loadedKey,
  fc.constantFrom(
    `it's "quoted" \`thrice\``,
    `'; DROP TABLE jobs; --`,
    '%_\\ $1 ?1 :name {0} \u202ertl',
    'a\ud800',
    '\udc00b',
    'a\0b',
    '\u001b[2J',
    '\ufefftext',
    '\u2028',
    ' \t ',
    'x'.repeat(200),
    'x'.repeat(201),
    '👩‍👩‍👧'.repeat(24),
  ),
);

/** Text that any name of ours may be. */
export const goodName: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    'a',
    'email.send',
    '__proto__',
    'constructor',
    'naïve 日本語 👩‍👩‍👧',
    `'; DROP TABLE jobs; --`,
    ' x ',
  ),
  fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .filter((name) => name.trim() !== '' && name.isWellFormed() && !/\p{Cc}/u.test(name)),
);

const anyValue: fc.Arbitrary<unknown> = fc.anything({
  key: fc.oneof({ weight: 3, arbitrary: fc.string({ maxLength: 5 }) }, { weight: 1, arbitrary: loadedKey }),
  maxDepth: 3,
  maxKeys: 4,
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withObjectString: true,
  withSparseArray: true,
  withTypedArray: true,
});

/** Anything at all, but for a promise that never settles: whoever awaits what it is given would wait for ever. */
export const anything: fc.Arbitrary<Recipe> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...monsters) },
  { weight: 2, arbitrary: anyValue.map(Recipe.of) },
  { weight: 1, arbitrary: text.map(Recipe.of) },
);

/** For whoever awaits nothing. */
export const evenEndless: fc.Arbitrary<Recipe> = mostly(anything, fc.constant(new Recipe(endless, 'endless()')));

/** What JSON carries, with keys and texts that have broken such code elsewhere. Never -0, which JSON makes 0. */
export const json: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.maxSafeInteger(), text),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.array(tie('value'), { maxLength: 4 }),
    // fromEntries defines own properties, so that __proto__ is just a key.
    fc
      .array(fc.tuple(fc.oneof(text, loadedKey), tie('value')), { maxLength: 4 })
      .map(Object.fromEntries)
      .filter((value) => typeof value.toJSON !== 'function'),
  ),
})).value;

export const goodDuration: fc.Arbitrary<number | string> = fc.oneof(
  fc.constantFrom('500ms', '30s', '5m', '2h', '3d', '1.5s', '0ms', 0, 1, 60_000),
  fc.integer({ min: 0, max: 100_000_000 }),
  fc
    .tuple(fc.integer({ min: 0, max: 365 }), fc.constantFrom('ms', 's', 'm', 'h', 'd'))
    .map(([n, unit]) => `${n}${unit}`),
);

/** Nearly a duration. */
export const oddDuration: fc.Arbitrary<string> = fc.oneof(
  fc
    .tuple(fc.constantFrom('', '-', '+', ' '), fc.double(), fc.constantFrom('', 's', 'S', 'sec', 'ms ', 'd', '\n'))
    .map((parts) => parts.join('')),
  fc.constantFrom(
    '1e3s',
    '٣s',
    '1_000ms',
    '1,5s',
    'Infinityms',
    '0x10s',
    `${'9'.repeat(400)}d`,
    `${'1'.repeat(100_000)}x`,
  ),
);

export const goodRetry: fc.Arbitrary<Record<string, unknown>> = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 20 }),
    backoff: fc.oneof(
      fc.record({ kind: fc.constant('fixed'), base: goodDuration }),
      fc.record({ kind: fc.constant('exponential'), base: fc.nat(1_000), factor: fc.constantFrom(1, 1.5, 2, 1e308) }),
      fc.record({ kind: fc.constantFrom('linear', 'fibonacci'), base: fc.nat(1_000), max: fc.constant('1h') }),
      fc.record({ kind: fc.constant('table'), delays: fc.array(goodDuration, { minLength: 1, maxLength: 4 }) }),
    ),
    jitter: fc.oneof(
      fc.constantFrom('none', 'full', 'equal', 'decorrelated'),
      fc.record({ spread: fc.double({ min: 0, max: 1, noNaN: true }) }),
    ),
    deadline: fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 1e9 })),
    maxCrashes: fc.integer({ min: 1, max: 5 }),
    maxRuns: fc.integer({ min: 1, max: 20_000 }),
  },
  { requiredKeys: [] },
);

/** One in sixteen is the other: rare enough that a case with many parts has but one or two that are wrong. */
export function mostly<Usual, Other>(
  usual: fc.Arbitrary<Usual>,
  other: fc.Arbitrary<Other>,
): fc.Arbitrary<Usual | Other> {
  return fc.oneof({ weight: 15, arbitrary: usual }, { weight: 1, arbitrary: other });
}

/** Marks an arbitrary of recipes, so that `optionsOf` makes their values as members of its own. */
export function recipes(arbitrary: fc.Arbitrary<Recipe>): fc.Arbitrary<unknown> {
  return arbitrary;
}

type Shape = 'plain' | 'null-prototype' | 'getters' | 'fickle' | 'frozen';
const shapes: readonly Shape[] = ['plain', 'null-prototype', 'getters', 'fickle', 'frozen'];

/**
 * Options: each left out, right, or anything at all; sometimes with one nobody knows, or with one that throws when it
 * is read; as a literal, behind getters, or behind getters that answer something else from the second time on.
 */
export function optionsOf(
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  required: readonly string[] = [],
): fc.Arbitrary<Recipe> {
  const field = (right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => mostly(right, anything);
  const record = fc.record(Object.fromEntries(Object.entries(fields).map(([name, right]) => [name, field(right)])), {
    requiredKeys: [...required],
  });
  const stranger = mostly(fc.constant(null), fc.tuple(fc.oneof(text, loadedKey), fc.constant(1)));
  const bomb = mostly(fc.constant(null), fc.constantFrom(...Object.keys(fields)));
  const sane = fc.tuple(record, stranger, bomb, fc.constantFrom(...shapes)).map(([own, unknown, exploding, shape]) => {
    const entries = [...Object.entries(own), ...(unknown === null ? [] : [unknown])];
    return new Recipe(
      () =>
        shaped(
          entries.map(([name, value]) => [name, made(value)]),
          exploding,
          shape,
        ),
      `${shape} options ${fc.stringify(Object.fromEntries(entries))}${exploding === null ? '' : `, ${exploding} throws`}`,
    );
  });
  return mostly(sane, anything);
}

/** What recipes anywhere in it make. Everything else in it is ours, and plain. */
function made(value: unknown): unknown {
  if (value instanceof Recipe) return value.make();
  if (Array.isArray(value)) return value.map(made);
  if (!isPlainObject(value) || Object.isFrozen(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, made(member)]));
}

function shaped(entries: readonly (readonly [string, unknown])[], exploding: string | null, shape: Shape): object {
  const options: object = shape === 'null-prototype' ? Object.create(null) : {};
  for (const [name, value] of entries) {
    let reads = 0;
    const get = (): unknown => (shape === 'fickle' && reads++ > 0 ? refusing({}) : value);
    const how = shape === 'getters' || shape === 'fickle' ? { get } : { value, writable: true };
    Object.defineProperty(options, name, { ...how, enumerable: true, configurable: true });
  }
  if (exploding !== null)
    Object.defineProperty(options, exploding, { get: refuse, enumerable: true, configurable: true });
  return shape === 'frozen' ? Object.freeze(options) : options;
}

/** A duration that is right most of the time. */
export const duration: fc.Arbitrary<unknown> = mostly(goodDuration, oddDuration);

/** A name that may be one most of the time. */
export const name: fc.Arbitrary<string> = mostly(goodName, text);

/** Retry options whose every part may be wrong. */
const oddRetry: fc.Arbitrary<Recipe> = optionsOf({
  maxAttempts: fc.integer({ min: -1, max: 5 }),
  maxRetries: mostly(fc.constant(undefined), fc.integer({ min: -1, max: 5 })),
  backoff: recipes(
    fc.oneof(
      optionsOf({ kind: fc.constant('fixed'), base: duration }, ['kind', 'base']),
      optionsOf({ kind: fc.constantFrom('linear', 'fibonacci', 'liner'), base: duration, max: duration }, [
        'kind',
        'base',
      ]),
      optionsOf({ kind: fc.constant('exponential'), base: duration, factor: fc.double({ min: 0.9, max: 3 }) }, [
        'base',
      ]),
      optionsOf({ kind: fc.constantFrom('table', 'tabel'), delays: fc.array(duration, { maxLength: 3 }) }, ['kind']),
    ),
  ),
  jitter: recipes(
    fc.oneof(
      fc.constantFrom('none', 'full', 'equals').map(Recipe.of),
      optionsOf({ spread: fc.double({ min: -0.1, max: 1 }) }),
    ),
  ),
  deadline: fc.oneof(fc.constant(null), duration),
  maxCrashes: fc.integer({ min: 0, max: 5 }),
  maxRuns: fc.integer({ min: 0, max: 5 }),
});

/** What is said about retrying: whole policies, and ones whose every part may be wrong. */
export const retry: fc.Arbitrary<Recipe> = fc.oneof(
  { weight: 2, arbitrary: goodRetry.map(Recipe.of) },
  { weight: 1, arbitrary: oddRetry },
);
