import { describe, expect, test } from 'vitest';
import { isTerminal, type JobState, type Settled, settledBy, stateAt, states, transitions } from './job.ts';
import type { Decision } from './retry/decision.ts';

const now = 1_000;

test('a job has ended when nothing but a redrive can follow', () => {
  for (const state of states) {
    const next: readonly JobState[] = transitions[state];
    expect(isTerminal(state)).toBe(next.length === 0 || state === 'dead');
  }
});

describe('a settlement', () => {
  const ended = { lane: null, ran: true, dueAt: null, deadReason: null, overruled: false };
  const waits = { lane: null, counted: false, ran: false, deadReason: null, overruled: false };
  const later = (kind: 'snooze' | 'release', delayMs: number): Decision => ({ kind, delayMs, rule: 'r' });

  test.each<[string, Decision, Settled]>([
    ['completes', { kind: 'complete', rule: 'r' }, { ...ended, state: 'completed', counted: true }],
    ['cancels', { kind: 'cancel', counted: true, rule: 'r' }, { ...ended, state: 'cancelled', counted: true }],
    [
      'cancels what did not run',
      { kind: 'cancel', counted: false, rule: 'r' },
      { ...ended, state: 'cancelled', counted: false },
    ],
    [
      'buries, and counts the run',
      { kind: 'dead', reason: 'exhausted', counted: true, rule: 'r' },
      { ...ended, state: 'dead', counted: true, deadReason: 'exhausted' },
    ],
    [
      'buries, and gives the attempt back',
      { kind: 'dead', reason: 'deadline', counted: false, rule: 'r' },
      { ...ended, state: 'dead', counted: false, deadReason: 'deadline' },
    ],
    [
      'retries',
      { kind: 'retry', why: 'backoff', delayMs: 5, lane: 'suspect', rule: 'r' },
      {
        state: 'retrying',
        lane: 'suspect',
        counted: true,
        ran: true,
        dueAt: now + 5,
        deadReason: null,
        overruled: false,
      },
    ],
    ['snoozes, however shortly', later('snooze', 1), { ...waits, ran: true, state: 'scheduled', dueAt: now + 1 }],
    ['hands back for now', later('release', 0), { ...waits, state: 'ready', dueAt: now }],
    [
      'defers',
      { kind: 'defer', delayMs: 7, lane: 'retry', rule: 'r' },
      { ...waits, ran: true, lane: 'retry', state: 'retrying', dueAt: now + 7 },
    ],
  ])('%s', (_, decision, settled) => {
    expect(settledBy(decision, false, now)).toEqual(settled);
    const cancelled = { ...settled, state: 'cancelled', lane: null, dueAt: null, overruled: true };
    expect(settledBy(decision, true, now)).toEqual(settled.dueAt === null ? settled : cancelled);
  });
});

test('a job that waits is ready from the very moment it is due', () => {
  for (const stored of ['scheduled', 'retrying'] as const) {
    expect(stateAt(stored, now, now - 1)).toBe(stored);
    expect(stateAt(stored, now, now)).toBe('ready');
  }
  for (const stored of ['ready', 'running', 'completed', 'dead', 'cancelled'] as const) {
    expect(stateAt(stored, now, now + 1)).toBe(stored);
  }
});
