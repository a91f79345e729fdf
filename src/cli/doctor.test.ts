import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import { bad, type Check, fromTrouble, look, ok, warn, worst } from './doctor/check.ts';
import { count, size, some } from './doctor/words.ts';
import { checkLines } from './doctor.ts';

const wide = fakeOutput().output;

it('shows each check on lines of its own, with what to do below it', () => {
  expect(checkLines([ok('a', 'fine'), bad('longer', 'not so', 'mend it')], wide)).toEqual([
    'ok    a       fine',
    'bad   longer  not so',
    '              -> mend it',
  ]);
});

it('wraps long text, and escapes control characters in names that others chose', () => {
  const { output } = fakeOutput({ terminal: { columns: 40, rows: 24 } });
  const lines = checkLines([warn('x', `${'word '.repeat(12)}\u001b[2J`, 'do it\nnow')], output);
  expect(lines.every((line) => line.length <= 40)).toBe(true);
  expect(lines.join('')).not.toContain('\u001b');
  expect(lines.join(' ')).toMatch(/word.*\\x1b\[2J.*-> do it\\nnow/);
});

it('is as bad as the worst of its checks', () => {
  expect(worst([])).toBe('ok');
  expect(worst([ok('a', ''), warn('b', '', '')])).toBe('warn');
  expect(worst([warn('a', '', ''), bad('b', '', ''), ok('c', '')])).toBe('bad');
  const trouble: Omit<Check, 'name'>[] = [
    { health: 'warn', found: 'one', advice: 'this' },
    { health: 'bad', found: 'two', advice: 'that' },
  ];
  expect(fromTrouble('x', 'all', trouble)).toEqual(bad('x', 'one; two', 'this; that'));
  expect(fromTrouble('x', 'all', [])).toEqual(ok('x', 'all'));
});

it('reports a check that threw as bad, without a password', async () => {
  const failed = await look('x', () => Promise.reject(new Error('no way to postgres://me:secret@host/db')));
  expect(failed).toMatchObject([{ name: 'x', health: 'bad', found: expect.stringContaining('no way to') }]);
  expect(JSON.stringify(failed)).not.toContain('secret');
});

it('has sizes and amounts for people', () => {
  expect([0, 999, 1_000, 61_440, 1_250_000, 83e9].map(size)).toEqual([
    ...['0 bytes', '999 bytes', '1.0 kB', '61 kB', '1.3 MB', '83 GB'],
  ]);
  expect([count(1, 'job'), count(12_345, 'job')]).toEqual(['1 job', '12,345 jobs']);
  expect([some(['a', 'b'], 2), some(['a', 'b', 'c'], 2)]).toEqual(['a, b', 'a, b and 1 more']);
});
