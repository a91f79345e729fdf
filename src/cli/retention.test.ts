import { expect, it } from 'vitest';
import { readKept } from './retention.ts';

it.each<[string, object]>([
  ['completed=30d', { completed: 30 * 86_400_000 }],
  ['dead=forever,cancelled=0ms', { dead: null, cancelled: 0 }],
])('reads %s', (text, retention) => {
  expect(readKept(text)).toEqual(retention);
});

it.each<[string, RegExp]>([
  ['completed', /^kept: expected state=duration, several with commas, got "completed"/],
  ['', /^kept: expected state=duration/],
  ['dead=', /^kept: expected state=duration/],
  ['dead=1d=2d', /^kept: expected state=duration/],
  ['completed=1d,', /^kept: expected state=duration/],
  ['dread=1d', /^kept: expected one of .* Did you mean dead\?/],
  ['dead=90', /^kept: dead: expected a duration/],
])('refuses %j', (text, complaint) => {
  expect(() => readKept(text)).toThrow(complaint);
});
