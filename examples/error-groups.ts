// Errors of one kind are one group, whatever ids are in their messages: what fails, since when, how many jobs got over it.

import { defineJob, Mulligan } from 'mulligan';

let isFixed = false;
const charge = defineJob<{ order: number }>({
  name: 'card.charge',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '20ms' }, jitter: 'none' },
  run({ order }, { attempt }) {
    if (order % 3 === 0 && !isFixed) throw new TypeError(`order ${order} has no currency`);
    if (order % 2 === 0 && attempt === 1)
      throw new Error(`order ${order}: the provider answered with request id req_${order}7f`);
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [charge], log: () => {} });
const ended = Promise.withResolvers<void>();
let left = 12;
const end = (): void => {
  if (--left === 0) ended.resolve();
};
mulligan.on('dead', end);
mulligan.on('completed', end);
mulligan.work();
await mulligan.enqueueMany(
  charge,
  Array.from({ length: 12 }, (_, index) => ({ input: { order: index + 1 } })),
);
await ended.promise;

for (const group of await mulligan.errors.list()) {
  const { fingerprint, dead, failing, recovered, recoveredAt, sample } = group;
  console.log(`${fingerprint}: ${dead} dead, ${failing} failing, ${recovered} recovered`);
  console.log(`  for example: ${sample?.error.name}: ${sample?.error.message}`);
  for (const { attempt, jobs } of recoveredAt) console.log(`  ${jobs} recovered at attempt ${attempt}`);
}

// The worst group, once its cause is fixed: bring its jobs back, and see whether they fail with it again.
const [worst] = await mulligan.errors.list({ state: 'dead', limit: 1 });
if (worst === undefined) throw new Error('expected an error group with dead jobs');
isFixed = true;
const redone = Promise.withResolvers<void>();
let completed = 0;
mulligan.on('completed', () => {
  if (++completed === worst.dead) redone.resolve();
});
await mulligan.dead.redrive({ error: worst.fingerprint });
await redone.promise;
const after = await mulligan.errors.show(worst.fingerprint);
console.log(
  `${worst.fingerprint}: redriven ${after?.redriven}, failed again ${after?.recurred}, dead now ${after?.dead}`,
);
