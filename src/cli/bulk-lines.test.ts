import { describe, expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import type { BulkResult } from '../bulk/bulk.ts';
import type { Operation } from '../store/store.ts';
import { bulkLines } from './bulk-lines.ts';
import { inCommands } from './failure.ts';

const operation: Operation = {
  id: 'o',
  action: 'redrive',
  by: 'ann',
  selection: {},
  options: null,
  state: 'done',
  startedAt: 0,
  updatedAt: 0,
  endedAt: 0,
  changed: 0,
  skipped: 0,
  canary: [],
  note: null,
  nextDueAt: 0,
};
const result: BulkResult = {
  dryRun: false,
  count: 0,
  isExact: true,
  samples: [],
  ids: [],
  skipped: [],
  cancelling: 0,
  dueUntil: null,
  others: [],
  operation,
  resumed: false,
  stopped: null,
};
const words = { done: 'cancelled', verb: 'cancel', what: 'jobs', asks: true };

function linesOf(changes: Partial<BulkResult>, more = {}): string[] {
  return bulkLines({ ...result, ...changes }, { ...words, ...more }, fakeOutput().output);
}

describe('what a bulk action prints', () => {
  it('counts all jobs that were skipped, not only those that the result names', () => {
    const skipped = Array.from({ length: 100 }, (_, id) => ({ id: `${id}`, why: 'nothing-left' as const }));
    const lines = linesOf({ skipped, operation: { ...operation, skipped: 30_000 } });
    expect(lines.at(-1)).toBe('And 29,980 more were skipped.');
  });

  it('tells jobs that are cancelled from running ones that were told to stop', () => {
    expect(linesOf({ count: 5, cancelling: 2 })).toEqual(['Cancelled 3 jobs; 2 running ones were told to stop.']);
    expect(linesOf({ count: 1, cancelling: 1 })).toEqual(['Cancelled 0 jobs; 1 running one was told to stop.']);
  });

  it('says of a dry run what the canary and the rate would do', () => {
    const redrive = { verb: 'redrive', what: 'dead jobs', rate: '50/s', canary: '10' };
    expect(linesOf({ dryRun: true, count: 3_011, operation: null }, redrive)).toEqual([
      'Would redrive 3,011 dead jobs, 10 of them first, and the rest only when these have completed, spread over 1m at 50/s.',
    ]);
  });
});

describe('an error of the library', () => {
  it.each([
    ['dead.redrive: rate: expected a rate', '--rate: expected a rate'],
    ['dead.redrive: canaryTimeout: expected', '--canary-timeout: expected'],
    ['errors.show: expected the fingerprint', 'expected the fingerprint'],
    [
      'jobs.runNow: expected x. Use dead.redrive for dead jobs.',
      'expected x. Use mulligan dead redrive for dead jobs.',
    ],
    ["dead.redrive: expected x, or end it with audit.stop('1').", 'expected x, or end it with mulligan audit stop 1.'],
  ])('%j is told in the words of the command line', (message, told) => {
    expect(inCommands(message)).toBe(told);
  });
});
