import { expect, it } from 'vitest';
import { readRetention } from './retention.ts';

it.each<[string, object]>([
  ['completed=30d', { completed: 30 * 86_400_000 }],
  ['dead=forever,cancelled=0ms', { dead: null, cancelled: 0 }],
])('reads %s', (text, retention) => {
  expect(readRetention(text)).toEqual(retention);
});

it.each<[string, RegExp]>([
  ['completed', /^--retention: expected state=duration, several with commas, got "completed"/],
  ['', /^--retention: expected state=duration/],
  ['dead=', /^--retention: expected state=duration/],
  ['dead=1d=2d', /^--retention: expected state=duration/],
  ['completed=1d,', /^--retention: expected state=duration/],
  ['dread=1d', /^--retention: expected one of .* Did you mean dead\?/],
  ['dead=90', /^--retention dead: expected a duration/],
])('refuses %j', (text, complaint) => {
  expect(() => readRetention(text)).toThrow(complaint);
});
