import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import type { Mulligan } from '../mulligan.ts';
import type { EventMap, EventName, Listener } from '../observe/events.ts';
import { reportRuns } from './work-report.ts';

const run = { id: 'id1', name: 'na\u001bme', queue: 'q', run: 2, attempt: 2, worker: 'w' };
const error = { name: 'Error', message: 'boo\u009b', code: null, status: null, stack: null };
const finished = { ...run, outcome: 'failed', error, durationMs: 1_500 } as const;

const events: { [Name in Exclude<EventName, 'enqueued' | 'gate' | 'limited'>]: [EventMap[Name], string] } = {
  started: [{ ...run, waitedMs: 30 }, 'attempt 2, waited 30ms'],
  completed: [{ ...finished, error: null, decision: { kind: 'complete', rule: 'completed' } }, 'in 1.5s'],
  retrying: [
    {
      ...finished,
      decision: { kind: 'retry', why: 'backoff', delayMs: 500, lane: 'retry', rule: 'default' },
      delayMs: 500,
    },
    'failed after 1.5s with Error: boo\\x9b; again in 500ms (default)',
  ],
  dead: [
    { ...finished, decision: { kind: 'dead', reason: 'poison', counted: true, rule: 'r' }, reason: 'poison' },
    'failed after 1.5s with Error: boo\\x9b; poison (r)',
  ],
  cancelled: [{ ...finished, decision: { kind: 'cancel', counted: true, rule: 'cancelled' } }, 'after 1.5s'],
  released: [
    { ...finished, outcome: 'released', decision: { kind: 'release', delayMs: 0, rule: 'shutdown' }, delayMs: 0 },
    'released, not counted; again in 0ms (shutdown)',
  ],
  rescued: [run, 'its lease expired'],
  'lease-lost': [run, 'another worker has it now'],
  'settle-failed': [{ ...run, error: new Error('disk\u001b') }, 'could not be recorded: Error: disk\\x1b'],
};

function reportAll(json: boolean): string[] {
  const { output, stdout } = fakeOutput({ json });
  const listeners = new Map<string, Listener<EventName>>();
  const on = (name: EventName, listener: Listener<EventName>): void => void listeners.set(name, listener);
  reportRuns({ on } as unknown as Mulligan, output);
  expect([...listeners.keys()].sort()).toEqual(Object.keys(events).sort());
  for (const [name, [event]] of Object.entries(events)) listeners.get(name)?.(event);
  expect(stdout.written).not.toContain('\u001b');
  return stdout.written.trimEnd().split('\n');
}

it('prints every event of a run on a line of its own', () => {
  const lines = reportAll(false);
  for (const [index, [name, [, expected]]] of Object.entries(events).entries()) {
    expect(lines[index]).toMatch(new RegExp(`^\\S+Z ${name} +na\\\\x1bme id1 run 2: `));
    expect(lines[index]).toContain(expected);
  }
});

it('prints every event as a JSON object', () => {
  const reported = reportAll(true).map((line) => JSON.parse(line));
  expect(reported.map(({ event }) => event)).toEqual(Object.keys(events));
  for (const one of reported) expect(one).toMatchObject({ ...run, at: expect.any(Number) });
  expect(reported.at(-1).error).toBe('Error: disk\u001b');
});
