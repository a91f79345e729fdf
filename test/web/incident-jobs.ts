import { setTimeout } from 'node:timers/promises';
import { defineJob } from '../../src/definition.ts';
import { defineSchedule } from '../../src/schedule-options.ts';

/* The application of the staged incidents: what its jobs do depends on its version, and on a mail provider that is real. */

export const goodVersion = '2026.11.3';
export const badVersion = '2026.11.4';

interface Invoice {
  readonly invoice: number;
  readonly customer?: { readonly address: string };
}

export function incidentJobs(version: string, providerUrl: string) {
  const retry = { maxAttempts: 4, backoff: { kind: 'exponential', base: '500ms', factor: 2 }, jitter: 'full' } as const;
  return {
    resize: defineJob<{ image: number }>({ name: 'image.resize', retry, run: () => setTimeout(80) }),
    mail: defineJob<{ to: string }>({
      name: 'email.send',
      resource: 'mail-provider',
      retry: { ...retry, maxAttempts: 8 },
      async run({ to }, { signal }) {
        const response = await fetch(providerUrl, { method: 'POST', body: to, signal });
        await response.text();
      },
    }),
    invoice: defineJob<Invoice>({
      name: 'invoice.render',
      retry,
      async run({ customer }) {
        await setTimeout(60);
        // The bad version takes for granted what only some invoices have.
        if (version === badVersion) return { lines: (customer as { address: string }).address.split('\n').length };
        return { lines: customer?.address.split('\n').length ?? 0 };
      },
    }),
    video: defineJob<{ video: number; frames: number }>({
      name: 'video.transcode',
      retry: { ...retry, maxAttempts: 20, maxCrashes: 12 },
      async run({ frames }) {
        // As the kernel does to a process that has taken all memory.
        if (frames > 1_000_000) process.kill(process.pid, 'SIGKILL');
        await setTimeout(300);
      },
    }),
    webhook: defineJob<{ tenant: string; event: number }>({
      name: 'webhook.deliver',
      retry,
      limit: { name: 'tenant', key: ({ tenant }) => tenant, concurrency: 2 },
      tags: ({ tenant }) => [`tenant:${tenant}`],
      run: () => setTimeout(500),
    }),
    sync: defineJob<object>({ name: 'rates.sync', retry, run: () => setTimeout(50) }),
    digest: defineJob<object>({ name: 'digest.build', queue: 'reports', retry, run: () => setTimeout(50) }),
  };
}

export type IncidentJobs = ReturnType<typeof incidentJobs>;

export function incidentSchedules({ sync, digest }: IncidentJobs) {
  return [
    defineSchedule({ name: 'exchange-rates', job: sync, every: '10s' }),
    defineSchedule({ name: 'morning-digest', job: digest, every: '15s' }),
  ];
}
