import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import type { RunRecord } from '../job.ts';
import { decidedText, errorText, ledgerLines } from './ledger.ts';

const { output } = fakeOutput();

function record(run: number, rest: Partial<RunRecord>): RunRecord {
  return {
    jobId: 'j',
    run,
    attempt: run,
    outcome: 'failed',
    counted: true,
    worker: 'w',
    startedAt: 0,
    endedAt: 12,
    error: null,
    decision: { kind: 'complete', rule: 'completed' },
    nextDueAt: null,
    ...rest,
  };
}

const error = { name: 'HttpError', message: 'busy\u001b[2J', code: 'E1', status: 503, stack: null };

it('says of a job that is set aside where it waits, not when it runs next', () => {
  const aside = { version: 1, isRejected: true };
  const set = record(1, { decision: { kind: 'release', delayMs: 0, rule: 'payload rejected', aside } });
  expect(ledgerLines([set], output)[1]).toMatch(/ set aside +w$/);
});

it('shows a row per run: what happened, what was decided and why, and when the job runs next, on which worker', () => {
  const lines = ledgerLines(
    [
      record(1, { error, decision: { kind: 'retry', why: 'backoff', delayMs: 500, lane: 'retry', rule: 'http:503' } }),
      record(2, { outcome: 'released', counted: false, decision: { kind: 'release', delayMs: 0, rule: 'shutdown' } }),
      record(3, { outcome: 'completed', endedAt: 65_000 }),
    ],
    output,
  );
  expect(lines).toEqual([
    'run    attempt  started                   outcome    duration  error                                  decided                    next         worker',
    '  1          1  1970-01-01T00:00:00.000Z  failed         12ms  HttpError (HTTP 503, E1): busy\\x1b[2J  retry: backoff (http:503)  after 500ms  w',
    '  2  uncounted  1970-01-01T00:00:00.000Z  released       12ms  -                                      release (shutdown)         after 0ms    w',
    '  3          3  1970-01-01T00:00:00.000Z  completed     1m 5s  -                                      complete                   -            w',
  ]);
});

it('shows the decision, its rule and its note', () => {
  const dead = { kind: 'dead', reason: 'exhausted', counted: true, rule: 'attempts 4 of 4' } as const;
  expect(decidedText(dead)).toBe('dead: exhausted (attempts 4 of 4)');
  expect(decidedText({ ...dead, note: 'classify threw' })).toBe('dead: exhausted (attempts 4 of 4); classify threw');
  expect(decidedText({ kind: 'cancel', counted: true, rule: 'cancel requested' })).toBe('cancel (cancel requested)');
});

it('names an error as briefly as it can', () => {
  expect(errorText({ name: 'Error', message: 'x', code: null, status: null, stack: null })).toBe('Error: x');
  expect(errorText({ name: 'Error', message: '', code: 'E', status: null, stack: null })).toBe('Error (E)');
});
