// One definition types the producer and the worker, with any Standard Schema (zod here; valibot, arktype, ...). The input
// is checked at enqueue, where the caller can still react, and again before each run.

import { defineJob, InputError, Mulligan } from 'mulligan';
import * as z from 'zod';

const sendEmail = defineJob({
  name: 'email.send',
  input: z.object({
    to: z.email(),
    subject: z.string().default('Hello'),
    sendAfter: z.iso.datetime().transform((text) => new Date(text)),
  }),
  // The output of the schema: a default filled in, a string turned into a Date.
  run({ to, subject, sendAfter }) {
    console.log(`to ${to}, subject "${subject}", year ${sendAfter.getUTCFullYear()}`);
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [sendEmail] });
const done = Promise.withResolvers<unknown>();
mulligan.on('completed', done.resolve);
mulligan.work();

await mulligan.enqueue(sendEmail, { to: 'ada@example.com', sendAfter: '2026-01-31T09:00:00Z' });
await done.promise;

try {
  // @ts-expect-error: `to` is a string, and sendAfter is missing. This does not compile, and is rejected at run time too.
  await mulligan.enqueue(sendEmail, { to: 42 });
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  console.log(`rejected (${error.code}):`);
  for (const { path, message } of error.issues) console.log(`  ${path}: ${message}`);
}
console.log(`stored: ${(await mulligan.stats()).totals.enqueued} job`);
