// A handler's return value is the result of its job, and `mulligan.result` waits for it, from any process. The producer
// imports the definition alone; the worker adds the handler with `implement`. Further: chaining, debounce, progress.

import { defineJob, implement, JobDeadError, Mulligan, typeOf, Unrecoverable } from 'mulligan';

// shared.ts: what producers and workers both import. No handler, so none of its code.
const shrink = defineJob<{ photo: string }>({ name: 'photo.shrink', queue: 'photos' });
const thumbnail = defineJob({ name: 'photo.thumbnail', output: typeOf<{ url: string; bytes: number }>() });

// worker.ts: the handlers.
const jobs = [
  implement(thumbnail, (input, { progress }) => {
    const { photo } = input as { photo: string };
    if (photo.endsWith('.exe')) throw new Unrecoverable(`${photo} is no photo`);
    progress({ percent: 100 });
    return { url: `https://cdn.example.com/${photo}`, bytes: 2_048 };
  }),
  implement(shrink, async ({ photo }, context) => {
    // The key makes a second run of this job safe: it finds the job that the first run has enqueued.
    const { id } = await context.enqueue(
      thumbnail,
      { photo },
      { key: `${context.job.id}:thumbnail`, keyUntil: 'pruned' },
    );
    return { next: id };
  }),
];

await using mulligan = await Mulligan.open('memory:', { jobs, log: () => {} });
mulligan.work();

// Typed by the definition: `url` is a string.
const { url } = await mulligan.result(await mulligan.enqueue(thumbnail, { photo: 'cat.jpg' }), { timeout: '30s' });
console.log(`the thumbnail is at ${url}`);

// A job that dies rejects, with the stored error as the cause.
try {
  await mulligan.result(await mulligan.enqueue(thumbnail, { photo: 'virus.exe' }));
} catch (error) {
  if (!(error instanceof JobDeadError)) throw error;
  console.log(`${error.code} (${error.reason}): ${(error.cause as Error).message}`);
}

// One job enqueues the next.
const { next } = (await mulligan.result(await mulligan.enqueue(shrink, { photo: 'dog.jpg' }))) as { next: string };
console.log(
  `and then: ${JSON.stringify(await mulligan.result(next))}, progress ${JSON.stringify((await mulligan.jobs.get(next))?.progress)}`,
);

// Debounce: the last input wins, once nothing has come for a while.
const saves = ['h', 'he', 'hello.jpg'].map((photo) =>
  mulligan.enqueue(thumbnail, { photo }, { key: 'editor-7', debounce: { wait: '50ms', maxWait: '1s' } }),
);
const last = (await Promise.all(saves)).at(-1);
if (last !== undefined) console.log(`debounced: ${(await mulligan.result(last)).url}`);
