import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { ConfigError } from './errors.ts';
import { Mulligan } from './mulligan.ts';
import type { LogEntry } from './observe/log.ts';
import { MemoryStore } from './store/memory/store.ts';
import type { SettleAnswer, Settlement } from './store/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;

describe('the log of a job', () => {
  it('has what each run wrote to context.log, newest run first, and the logger of the process has it too', async () => {
    const entries: LogEntry[] = [];
    const job = defineJob<null>({
      name: 'report',
      retry,
      async run(_, { log, attempt }) {
        log.debug('only for the process');
        log.info('reading', { attempt });
        if (attempt === 1) throw new Error('hung up');
        log.warn('slow');
      },
    });
    await using queue = await testQueue({ jobs: [job], log: (entry) => entries.push(entry) });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    const runs = await queue.mulligan.jobs.runs(id);
    const logs = await queue.mulligan.jobs.logs(id);
    expect(logs).toMatchObject([
      {
        run: 2,
        dropped: 0,
        lines: [
          { level: 'info', message: 'reading', fields: { attempt: 2 } },
          { level: 'warn', message: 'slow' },
        ],
      },
      { run: 1, dropped: 0, lines: [{ level: 'info', message: 'reading', fields: { attempt: 1 } }] },
    ]);
    expect(logs[1]?.lines[0]?.at).toBe(runs[0]?.startedAt);
    const ours = entries.filter(({ job: of }) => of === id).map(({ message }) => message);
    expect(ours).toEqual(['only for the process', 'reading', 'only for the process', 'reading', 'slow']);
    expect(await queue.mulligan.jobs.logs(id, 1)).toHaveLength(1);
  });

  it('costs a run that logs nothing nothing: its settlement carries no log', async () => {
    const settled: Settlement[] = [];
    class Watched extends MemoryStore {
      override settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
        settled.push(...settlements);
        return super.settle(settlements);
      }
    }
    const clock = new VirtualClock();
    const silent = defineJob<null>({ name: 'silent', run: async () => {} });
    const talking = defineJob<null>({ name: 'talking', run: async (_, { log }) => log.info('hello') });
    const mulligan = await Mulligan.open(new Watched({ clock }), { jobs: [silent, talking], clock, log: () => {} });
    await mulligan.enqueue(silent, null);
    await mulligan.enqueue(talking, null);
    const worker = mulligan.work();
    await clock.advance(1_000);
    await worker.whenIdle();
    await mulligan.close();
    expect(settled.map((settlement) => 'log' in settlement)).toEqual([false, true]);
  });

  it('has the end of a run that was told to stop and did not', async () => {
    const job = defineJob<null>({
      name: 'stuck',
      timeout: '1s',
      retry: { maxAttempts: 1 },
      run: () => new Promise(() => {}),
    });
    await using queue = await testQueue({ jobs: [job], log: () => {} });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    const [log] = await queue.mulligan.jobs.logs(id);
    expect(log?.lines.map(({ message }) => message)).toEqual([
      'the handler did not stop within 5s of its signal: timeout',
    ]);
  });

  it('is not read with a limit that is no number of runs', async () => {
    await using queue = await testQueue({ jobs: [] });
    await expect(queue.mulligan.jobs.logs('a', 0)).rejects.toThrow(ConfigError);
    await expect(queue.mulligan.jobs.logs('', 1)).rejects.toThrow(ConfigError);
  });
});
