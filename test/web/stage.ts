import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { type Clock, systemClock } from '../../src/clock.ts';
import { type AnyJobDefinition, defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { Unrecoverable } from '../../src/retry/control-errors.ts';
import type { Store } from '../../src/store/store.ts';

/*
 * A queue on a bad day, with real workers: a mail server that is down (its gate opens), charges that always fail, imports that
 * cannot succeed, reports that recover, tenants behind a limit, schedules, a job that runs and one that waits.
 */

const retry = { maxAttempts: 3, backoff: { kind: 'exponential', base: '60ms', factor: 2 }, jitter: 'full' } as const;

export interface Staged {
  readonly mulligan: Mulligan;
  /** The id of a job whose timeline has several runs and waits. */
  readonly recovered: string;
  readonly dead: string;
  readonly running: string;
  close(): Promise<void>;
}

export async function stage(target: string | Store, clock: Clock = systemClock): Promise<Staged> {
  let isMailDown = true;
  const ended = new AbortController();
  const until = (signal: AbortSignal): Promise<unknown> => once(signal, 'abort');
  const jobs: AnyJobDefinition[] = [
    defineJob<{ to: string }>({
      name: 'email.send',
      resource: 'smtp',
      retry: { ...retry, maxAttempts: 5 },
      async run() {
        if (isMailDown) throw Object.assign(new Error('connect ECONNREFUSED 10.0.3.7:587'), { code: 'ECONNREFUSED' });
      },
    }),
    defineJob<{ report: number }>({
      name: 'report.build',
      retry: { ...retry, maxAttempts: 4, backoff: { kind: 'exponential', base: '250ms', factor: 2 } },
      async run({ report }, { attempt, log }) {
        log.info('reading the warehouse', { report, part: attempt });
        await setTimeout(60 + 30 * attempt);
        if (attempt < 3) log.warn('the warehouse answers slowly', { latencyMs: 4_200 });
        else log.info('wrote the report', { pages: 12, sheets: ['summary', 'regions'] });
        if (attempt < 3) throw new Error(`the warehouse closed the connection while reading part ${report}`);
        return { rows: 1_204 + report, url: `https://reports.example.com/${report}.pdf` };
      },
    }),
    defineJob<{ customer: number; cardNumber: string }>({
      name: 'card.charge',
      retry,
      tags: ({ customer }) => [`customer:${customer}`],
      async run({ customer, cardNumber }, { log }) {
        log.info('charging', { customer, cardNumber });
        await setTimeout(20);
        log.error('declined', { code: 'card_declined' });
        throw Object.assign(new Error(`the payment provider declined the charge of customer ${customer}`), {
          name: 'CardDeclined',
          code: 'card_declined',
        });
      },
    }),
    defineJob<{ invoice: number }>({
      name: 'invoice.import',
      retry,
      async run({ invoice }) {
        throw new Unrecoverable(`invoice ${invoice} has no number`);
      },
    }),
    defineJob<{ partner: number }>({
      name: 'partner.sync',
      retry: { maxAttempts: 5, backoff: { kind: 'linear', base: '40m' }, jitter: 'full' },
      async run({ partner }) {
        throw new Error(`the export of partner ${partner} is not ready`);
      },
    }),
    defineJob<{ image: number }>({ name: 'image.resize', retry, run: async () => ({ width: 640 }) }),
    defineJob<{ tenant: string }>({
      name: 'webhook.deliver',
      retry,
      limit: { name: 'tenant', key: ({ tenant }) => tenant, concurrency: 2 },
      run: (_, { signal }) => Promise.race([until(signal), until(ended.signal)]),
    }),
    defineJob<{ export: number }>({
      name: 'export.csv',
      queue: 'exports',
      async run(_, { signal, progress }) {
        await progress({ rows: 12_000, of: 48_000 });
        await Promise.race([until(signal), until(ended.signal)]);
        signal.throwIfAborted();
      },
    }),
    defineJob<null>({ name: 'sessions.clean', run: async () => {} }),
  ];
  const mulligan = await Mulligan.open(target, {
    jobs,
    clock,
    log: () => {},
    schedules: [
      {
        name: 'nightly-cleanup',
        job: jobs.at(-1) as never,
        input: null as never,
        cron: '0 3 * * *',
        timezone: 'Europe/Berlin',
      },
      { name: 'heartbeat', job: jobs.at(-1) as never, input: null as never, every: '30m' },
    ],
  });
  const ids = async (name: string, inputs: readonly object[]): Promise<string[]> =>
    (
      await mulligan.enqueueMany(
        name,
        inputs.map((input) => ({ input })),
      )
    ).map(({ id }) => id);
  const some = <T>(length: number, make: (index: number) => T): T[] =>
    Array.from({ length }, (_, index) => make(index + 1));
  const images = await ids(
    'image.resize',
    some(40, (image) => ({ image })),
  );
  const [recovered = ''] = await ids(
    'report.build',
    some(6, (report) => ({ report })),
  );
  const charges = await ids(
    'card.charge',
    some(30, (customer) => ({ customer, cardNumber: '4242 4242 4242 4242' })),
  );
  await ids(
    'partner.sync',
    some(25, (partner) => ({ partner })),
  );
  await ids(
    'invoice.import',
    some(4, (invoice) => ({ invoice })),
  );
  await ids(
    'email.send',
    some(24, (user) => ({ to: `user${user}@example.com` })),
  );
  await ids(
    'webhook.deliver',
    some(9, (one) => ({ tenant: one < 7 ? 'acme' : 'globex' })),
  );
  const [running = ''] = await ids('export.csv', [{ export: 1 }]);
  await mulligan.enqueue('image.resize', { image: 99 }, { delay: '2h' });
  await mulligan.enqueue('image.resize', { image: 100 }, { queue: 'thumbnails' });
  const worker = mulligan.work({ concurrency: 12, poll: '50ms', name: 'web-1', version: '2026.11.3' });
  const settled = [recovered, charges.at(-1) as string, images.at(-1) as string];
  while ((await Promise.all(settled.map((id) => mulligan.jobs.get(id)))).some((job) => job?.finishedAt === null)) {
    await setTimeout(50);
  }
  await mulligan.queues.pause('exports', { by: 'ada@ops' });
  return {
    mulligan,
    recovered,
    dead: charges[0] as string,
    running,
    async close() {
      isMailDown = false;
      ended.abort();
      void worker;
      await mulligan.close({ grace: 0 });
    },
  };
}
