import fc from 'fast-check';
import { it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { goodName, goodRetry } from './arbitraries.ts';
import { hold } from './cases.ts';
import { refusing } from './monsters.ts';
import { watchRejections } from './rules.ts';

watchRejections();

/** The same data, at every level behind getters that answer once: whoever reads a part again gets something else. */
function fickle(data: unknown): never {
  if (typeof data !== 'object' || data === null) return data as never;
  const copy: object = Array.isArray(data) ? [] : {};
  for (const [key, value] of Object.entries(data)) {
    const answers = [fickle(value)];
    const get = (): unknown => (answers.length === 0 ? refusing({}) : answers.pop());
    Object.defineProperty(copy, key, { get, enumerable: true });
  }
  return copy as never;
}

const job = defineJob({ name: 'job', run: () => {} });
const rules = [{ status: [500, 599], class: 'job' }];

type Call = (mulligan: Mulligan, name: string, retry: object) => unknown;

/** Everything that takes options, with options that are right. */
const calls: Readonly<Record<string, Call>> = {
  defineJob: (mulligan, name, retry) =>
    mulligan.enqueue(defineJob(fickle({ name, run: () => {}, retry, rules, timeout: '1s' })), null),
  enqueue: (mulligan, name, retry) =>
    mulligan.enqueue(job, null, fickle({ queue: name, key: name, retry, delay: '1h' })),
  enqueueMany: (mulligan, name, retry) =>
    mulligan.enqueueMany(job, fickle([{ input: 1 }, { input: 2, priority: 3, retry }]), fickle({ queue: name, retry })),
  open: async (_, name, retry) => {
    const mulligan = await Mulligan.open('memory:', fickle({ queues: { [name]: { retry } }, jobs: [], hardCap: 5 }));
    await mulligan.enqueue(job, null, { queue: name });
  },
  list: (mulligan, name) => mulligan.jobs.list(fickle({ state: 'ready', name, limit: 5 })),
  redrive: (mulligan, name) => mulligan.dead.redrive(fickle({ ids: [name], name, keepAttempts: true, dryRun: true })),
  discard: (mulligan, name) => mulligan.dead.discard(fickle({ ids: [name, name], limit: 5 })),
  'work, by queue': (mulligan, name) => mulligan.work(fickle({ queues: { [name]: { weight: 2 } }, lease: '1m', name })),
  work: (mulligan, name) => mulligan.work(fickle({ queues: [name], concurrency: 5, poll: '1s' })),
  close: (mulligan) => mulligan.close(fickle({ grace: 0 })),
};

it('options are read once: what was checked is what is used', async () => {
  await hold(
    'options: read once',
    fc.asyncProperty(fc.constantFrom(...Object.keys(calls)), goodName, goodRetry, async (call, name, retry) => {
      const clock = new VirtualClock();
      const mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock });
      await calls[call]?.(mulligan, name, retry);
    }),
  );
});
