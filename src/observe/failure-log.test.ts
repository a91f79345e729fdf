import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type FailureEntry, FailureLog } from './failure-log.ts';
import { type LogEntry, makeLogger } from './log.ts';

const SECOND = 1_000;

function failureLog() {
  const clock = new VirtualClock();
  const entries: LogEntry[] = [];
  const log = makeLogger(
    (entry) => entries.push(entry),
    () => ({}),
  );
  return {
    clock,
    failures: new FailureLog(log, clock),
    messages: () => entries.splice(0).map(({ message }) => message),
    entries,
  };
}

const dead = (id: string, group = 'email.send Error'): FailureEntry => ({
  level: 'warn',
  message: 'a job is dead',
  group,
  fields: { id, name: 'email.send' },
  common: { name: 'email.send' },
});

describe('the log of failures', () => {
  it('writes the first of its kind at once, and counts those like it for a minute', async () => {
    const { clock, failures, entries } = failureLog();
    for (let n = 0; n <= 4_812; n++) failures.write(dead(`job ${n}`));
    expect(entries.splice(0)).toEqual([{ level: 'warn', message: 'a job is dead', id: 'job 0', name: 'email.send' }]);
    await clock.advance(59 * SECOND);
    expect(entries).toEqual([]);
    await clock.advance(SECOND);
    expect(entries).toEqual([
      { level: 'warn', message: 'a job is dead: and 4,812 more like it within 1m', name: 'email.send', more: 4_812 },
    ]);
  });

  it('goes on counting while it goes on, then forgets the kind', async () => {
    const { clock, failures, messages } = failureLog();
    for (let second = 0; second < 150; second++) {
      failures.write(dead(String(second)));
      await clock.advance(SECOND);
    }
    expect(messages()).toEqual([
      'a job is dead',
      'a job is dead: and 59 more like it within 1m',
      'a job is dead: and 60 more like it within 1m',
    ]);
    await clock.advance(31 * SECOND);
    expect(messages()).toEqual(['a job is dead: and 30 more like it within 1m']);
    await clock.advance(60 * SECOND);
    expect(messages()).toEqual([]);
    expect(clock.pending).toBe(0);
    failures.write(dead('later'));
    expect(messages()).toEqual(['a job is dead']);
  });

  it('counts each kind by itself', async () => {
    const { clock, failures, messages } = failureLog();
    failures.write(dead('1', 'a'));
    await clock.advance(30 * SECOND);
    failures.write(dead('2', 'b'));
    failures.write(dead('3', 'a'));
    failures.write(dead('4', 'b'));
    expect(messages()).toHaveLength(2);
    await clock.advance(30 * SECOND);
    expect(messages()).toEqual(['a job is dead: and 1 more like it within 1m']);
    await clock.advance(30 * SECOND);
    expect(messages()).toEqual(['a job is dead: and 1 more like it within 1m']);
  });

  it('writes the last counts when it stops, and leaves no timer behind', () => {
    const { clock, failures, messages } = failureLog();
    for (const id of ['1', '2', '3']) failures.write(dead(id));
    failures.stop();
    expect(messages()).toEqual(['a job is dead', 'a job is dead: and 2 more like it within 1m']);
    expect(clock.pending).toBe(0);
    failures.stop();
    expect(messages()).toEqual([]);
  });

  it('keeps no more than 1,000 kinds, however many there are', async () => {
    const { clock, failures, messages } = failureLog();
    for (let n = 0; n < 5_000; n++) failures.write(dead(String(n), `kind ${n}`));
    expect(messages()).toHaveLength(1_000);
    await clock.advance(60 * SECOND);
    expect(messages()).toEqual(['a job is dead: and 4,000 more like it within 1m']);
  });
});
