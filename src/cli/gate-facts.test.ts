import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import { type GateInfo, unheardOf } from '../observe/gate-info.ts';
import { gateListLines } from './gate-facts.ts';

const NOW = 1_000_000_000;
const gate = (name: string): GateInfo => ({
  ...unheardOf({ kind: 'resource', name }, { change: 'opened', rule: 'fast', who: null, at: NOW } as never, NOW),
  ...{ phase: 'open', since: NOW - 90_000, nextAt: NOW + 12_000, waiting: 1_234 },
});
const listed = (columns: number, ...names: string[]): string[] =>
  gateListLines(names.map(gate), fakeOutput({ terminal: { columns, rows: 24 } }).output);

it.each([60, 80, 120])('the list has the whole name of each gate at %i columns, with its state', (columns) => {
  const names = ['smtp', 'webhook/ep-0001.customers.example.com', 'webhook/ep-0002.customers.example.com'];
  const [, ...rows] = listed(columns, ...names);
  expect(rows.map((row) => row.split(/ +/)[0])).toEqual(names);
  expect(rows.every((row) => /^\S+ +(resource +)?open /.test(row) && row.length <= columns)).toBe(true);
});

it('the list leaves out kind and since, then rate and why, when a name needs the room', () => {
  const heading = (columns: number, length: number): string => listed(columns, 'x'.repeat(length))[0] as string;
  expect(heading(120, 30)).toMatch(/^gate +kind +state +since +next start +waiting +rate +why$/);
  expect(heading(80, 30)).toMatch(/^gate +state +next start +waiting +rate +why$/);
  expect(heading(60, 30)).toMatch(/^gate +state +next start +waiting$/);
});

it('the list has a name whole that is wider than the terminal', () => {
  expect(listed(60, 'x'.repeat(200))[1]).toBe(`${'x'.repeat(200)}  open`);
});
