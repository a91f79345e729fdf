import { expect, test } from 'vitest';
import { explain } from './explain-gate.ts';
import { type GateInfo, unheardOf } from './gate-info.ts';

const NOW = 1_000_000;
const context = { isKnown: true, history: [], parent: null };
const gate = (changes: Partial<GateInfo>): GateInfo => ({
  ...unheardOf({ kind: 'resource', name: 'smtp' }, null, NOW),
  ...changes,
});

test('an open gate says how long the dependency is down, ramps that failed included; a ramp does not say that it is', () => {
  const times = { since: NOW - 5_000, downSince: NOW - 60_000 };
  expect(explain(gate({ phase: 'open', ...times }), context)).toContain('The dependency has been down for 1m.');
  const ramp = gate({ phase: 'ramp', ...times, rate: { limit: 5, peak: 20 } });
  expect(explain(ramp, context).join(' ')).not.toContain('down for');
});

test('a worker that failed alone is named while others start jobs, not in an outage that it saw first', () => {
  const alone = '1 worker failed alone and may start one job at a time: look at its network.';
  expect(explain(gate({ suspectWorkers: 1 }), context)).toContain(alone);
  expect(explain(gate({ suspectWorkers: 1, phase: 'open' }), context)).not.toContain(alone);
});

test('a parent in an outage says what that means for its keys', () => {
  const parent = (phase: GateInfo['phase']): string => explain(gate({ kind: 'parent', phase }), context).join(' ');
  expect(parent('open')).toContain('each of them opens at its first failure: look at your own network.');
  expect(parent('closed')).toContain('each of its keys is judged by its own runs.');
});

test('a key that is not stored is told from a name that was not heard of', () => {
  const key = gate({ name: 'webhook/a.example' });
  const parent = gate({ kind: 'parent', name: 'webhook' });
  expect(explain(key, { ...context, isKnown: false, parent })).toEqual([
    'It is closed: every due job starts. It is healthy, unused or misspelt: keys of webhook that are well are not stored.',
  ]);
  expect(explain(key, { ...context, isKnown: false })[0]).toContain('It has not been heard of lately');
});
