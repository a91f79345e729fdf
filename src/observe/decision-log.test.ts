import { expect, it } from 'vitest';
import { defineJob, Mulligan, Unrecoverable } from '../index.ts';
import { retryIn, settlement, startOne } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { DecisionLog } from './decision-log.ts';

/** As pino is: methods that take fields and a message, and `this`. */
class Recorder {
  readonly lines: (Record<string, unknown> & { level: string; message: string })[] = [];
  readonly least: string;
  constructor(least = 'debug') {
    this.least = least;
  }
  isLevelEnabled(level: string): boolean {
    return level !== 'debug' || this.least === 'debug';
  }
  debug(fields: object, message: string): void {
    this.lines.push({ ...fields, level: 'debug', message });
  }
  info(fields: object, message: string): void {
    this.lines.push({ ...fields, level: 'info', message });
  }
  warn(fields: object, message: string): void {
    this.lines.push({ ...fields, level: 'warn', message });
  }
  error(fields: object, message: string): void {
    this.lines.push({ ...fields, level: 'error', message });
  }
}

const flaky = defineJob<number>({
  name: 'email.send',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '2s' }, jitter: 'none' },
  run(fails, { attempt }) {
    if (attempt <= fails) throw new Error('the mail server hung up');
  },
});

it('a logger gets one line per decision at debug, and per dead job at warn', async () => {
  const log = new Recorder();
  await using queue = await testQueue({ jobs: [flaky], log });
  const { id } = await queue.mulligan.enqueue(flaky, 1);
  await queue.drain();
  await queue.mulligan.enqueueMany(flaky, [{ input: 9 }, { input: 9 }]);
  await queue.drain();
  const run = { event: 'decision', id, name: 'email.send', queue: 'default', worker: queue.worker.id, durationMs: 0 };
  expect(log.lines.slice(0, 2)).toEqual([
    {
      ...run,
      level: 'debug',
      message: 'a run failed: retry',
      run: 1,
      attempt: 1,
      lane: 'fresh',
      outcome: 'failed',
      decision: 'retry',
      rule: 'default',
      delayMs: 2_000,
      error: 'Error: the mail server hung up',
      fingerprint: expect.any(String),
    },
    {
      ...run,
      level: 'debug',
      message: 'a run completed: complete',
      run: 2,
      attempt: 2,
      lane: 'retry',
      outcome: 'completed',
      decision: 'complete',
      rule: 'completed',
    },
  ]);
  const dead = log.lines.filter(({ level }) => level === 'warn');
  expect(dead.map(({ message, event, reason, rule }) => ({ message, event, reason, rule }))).toEqual(
    Array(2).fill({
      message: 'a job is dead (exhausted)',
      event: 'dead',
      reason: 'exhausted',
      rule: 'attempts 2 of 2',
    }),
  );
  expect(log.lines).toHaveLength(6);
});

it('a logger that has debug off is asked first, and still hears of dead jobs and of what handlers log', async () => {
  const log = new Recorder('info');
  const doomed = defineJob<null>({
    name: 'doomed',
    run(_, context) {
      context.log.info('about to fail', { error: new TypeError('with a stack') });
      throw new Unrecoverable('never');
    },
  });
  await using queue = await testQueue({ jobs: [doomed, flaky], log });
  await queue.mulligan.enqueue(doomed, null);
  await queue.mulligan.enqueue(flaky, 0);
  await queue.drain();
  expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
    ['info', 'about to fail'],
    ['warn', 'a job is dead (unrecoverable)'],
  ]);
  expect(log.lines[0]).toMatchObject({ err: expect.any(TypeError), name: 'doomed', run: 1 });
});

it('a cancel that overrules a decision is in its line', async () => {
  const log = new Recorder();
  const store = new MemoryStore({ clock: new VirtualClock() });
  const job = await startOne(store);
  new DecisionLog(log).write(job, settlement(job, retryIn(1_000)), 'cancelled');
  expect(log.lines).toMatchObject([{ decision: 'retry', overruled: 'cancelled' }]);
});

it('a logger that throws costs no job', async () => {
  const broken = (): never => {
    throw new Error('the disk is full');
  };
  const log = { debug: broken, info: broken, warn: broken, error: broken };
  await using queue = await testQueue({ jobs: [flaky], log });
  const { id } = await queue.mulligan.enqueue(flaky, 0);
  await queue.drain();
  expect((await queue.mulligan.jobs.get(id))?.state).toBe('completed');
});

it.each([null, 'stdout', {}, { info() {}, warn() {}, error() {} }])('%j is no logger', async (log) => {
  await expect(Mulligan.open('memory:', { log: log as never })).rejects.toThrow(
    'Mulligan.open: log: expected a function that takes log entries, or a logger with debug, info, warn and error, got',
  );
});
