// A rolling deploy on one store: a worker of the old program, and jobs of the new one. The old worker moves what it cannot run
// aside, at no cost, and the new worker takes it as soon as it is there. Jobs of the old version are migrated.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineJob, Mulligan } from 'mulligan';

const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
const store = `sqlite:${join(folder, 'jobs.db')}`;
const log = (): void => {};

// The old program: one address per mail.
const sendOld = defineJob<{ to: string }>({
  name: 'mail.send',
  run: ({ to }) => console.log(`old worker: mail to ${to}`),
});

// The new program: several addresses, and a job that is new.
const sendNew = defineJob<{ to: string[] }>({
  name: 'mail.send',
  version: 2,
  migrate: (old: { to: string }) => ({ to: [old.to] }),
  run: ({ to }, { job }) =>
    console.log(`new worker: mail to ${to.join(' and ')} (enqueued as version ${job.version ?? 1})`),
});
const archive = defineJob<string>({ name: 'mail.archive', run: (id) => console.log(`new worker: archived ${id}`) });

const oldProgram = await Mulligan.open(store, { jobs: [sendOld], log });
const oldWorker = oldProgram.work();
const producer = await Mulligan.open(store, { jobs: [sendNew, archive], log });

await producer.enqueue(sendOld, { to: 'ann' });
const { id } = await producer.enqueue(sendNew, { to: ['ben', 'cleo'] });
await producer.enqueue(archive, 'mail 17');
await oldWorker.whenIdle();

const waiting = await producer.jobs.get(id);
const [handedBack] = await producer.jobs.runs(id);
console.log(
  `waits for the new worker: ${waiting?.state}, attempts ${waiting?.attempts}, rule "${handedBack?.decision.rule}"\n`,
);

await oldWorker.stop();
await producer.enqueue(sendOld, { to: 'dan' });
await producer.work().whenIdle();

await producer.close();
await oldProgram.close();
rmSync(folder, { recursive: true });
