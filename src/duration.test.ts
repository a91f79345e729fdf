import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Duration, formatDuration, parseDuration } from './duration.ts';
import { ConfigError } from './errors.ts';

test.each<[Duration, number]>([
  ['500ms', 500],
  ['30s', 30_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['3d', 259_200_000],
  ['1w', 604_800_000],
  ['1.5s', 1_500],
  ['0.0004s', 0],
  ['1.1s', 1_100],
  ['0s', 0],
  [0, 0],
  [-0, 0],
  [1.6, 2],
  [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
])('%s is %i ms', (value, ms) => {
  expect(Object.is(parseDuration(value, 'delay'), ms)).toBe(true);
});

test.each([
  ['-5s'],
  ['5 s'],
  [' 5s'],
  ['5s '],
  ['5S'],
  ['s'],
  [''],
  ['5'],
  ['1e3s'],
  ['.5s'],
  ['5.s'],
  ['1h30m'],
  ['Infinitys'],
  ['200000000000d'],
  ['9'.repeat(400).concat('ms')],
  ['5constructor'],
  [-1],
  [-0.2],
  [NaN],
  [Infinity],
  [2 ** 53],
  [5n],
  [null],
  [undefined],
  [{}],
  [['5s']],
  [new Date(0)],
  [Symbol('5s')],
])('%o is no duration', (value) => {
  expect(() => parseDuration(value, 'delay')).toThrow(ConfigError);
});

test('the message names the option, what was expected, what was given and what to do', () => {
  const expected = "expected a duration such as '500ms', '30s', '5m', '2h', '3d' or '1w'";
  expect(() => parseDuration('5sec', 'retry.backoff.base')).toThrow(
    `retry.backoff.base: ${expected}, got "5sec". There is no unit sec.`,
  );
  expect(() => parseDuration(-5, 'timeout')).toThrow(
    `${expected}, or a number of milliseconds, got -5. A duration cannot be negative.`,
  );
});

test('text without a unit is refused without a word about numbers, which text never is', () => {
  expect(() => parseDuration('10', 'lease')).toThrow(
    new ConfigError(
      `lease: expected a duration such as '500ms', '30s', '5m', '2h', '3d' or '1w', got "10". Add a unit, such as 10s or 10ms.`,
    ),
  );
});

test.each([
  [0, '0ms'],
  [500, '500ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [1_250, '1250ms'],
  [30_000, '30s'],
  [60_000, '1m'],
  [61_000, '61s'],
  [300_000, '5m'],
  [5_400_000, '1.5h'],
  [7_200_000, '2h'],
  [259_200_000, '3d'],
  [-5_000, '-5000ms'],
])('%i ms is written %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('what is written is read back as the same duration', () => {
  const units = [1, 100, 1_000, 30_000, 60_000, 3_600_000, 43_200_000, 86_400_000];
  const byUnit = fc.tuple(fc.nat(100_000), fc.constantFrom(...units)).map(([count, unit]) => count * unit);
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeNat(), byUnit), (ms) => {
      expect(parseDuration(formatDuration(ms), 'duration')).toBe(ms);
    }),
  );
});

test('a duration is a whole number of ms, or an error', () => {
  fc.assert(
    fc.property(fc.oneof(fc.anything(), fc.double(), fc.stringMatching(/^\d*\.?\d*(ms|s|m|h|d|x)$/)), (value) => {
      try {
        const ms = parseDuration(value, 'delay');
        expect(Number.isSafeInteger(ms) && ms >= 0).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
  );
});
