// Three shops share one worker: two jobs of a shop at a time, five starts per second of each, however many one of them has
// enqueued; and the events of one account are applied in order, also when one of them fails. On a virtual clock, so that it
// takes no time; `mulligan.work()` does the same on a real one.

import { defineJob } from 'mulligan';
import { testQueue } from 'mulligan/testing';

const wait = (ms: number): Promise<void> => new Promise((resolve) => queue.clock.after(ms, resolve));
const running = new Map<string, number>();
let most = 0;
const done: string[] = [];

const syncShop = defineJob<{ shop: string }>({
  name: 'shop.sync',
  // The key is stored with the job; (key) => number as the concurrency gives each key its own.
  limit: { name: 'shopify', key: ({ shop }) => shop, concurrency: 2, rate: { limit: 5, per: '1s' } },
  async run({ shop }) {
    const now = (running.get(shop) ?? 0) + 1;
    most = Math.max(most, now);
    running.set(shop, now);
    await wait(300);
    running.set(shop, now - 1);
    done.push(shop);
  },
});

const applied: number[] = [];
const applyEvent = defineJob<{ account: string; event: number }>({
  name: 'account.apply',
  limit: { name: 'account', key: ({ account }) => account, concurrency: 1 },
  retry: { backoff: { kind: 'fixed', base: '10s' } },
  run({ event }, { attempt }) {
    if (event === 2 && attempt < 3) throw new Error('the ledger is locked');
    applied.push(event);
  },
});

await using queue = await testQueue({ jobs: [syncShop, applyEvent] });
const { mulligan, clock } = queue;
mulligan.on('limited', ({ limit, jobs }) => console.log(`limit ${limit} keeps ${jobs.join(', ')} waiting`));

const shops = [...Array<string>(40).fill('large.example'), 'small.example', 'tiny.example'];
const jobs = await mulligan.enqueueMany(
  syncShop,
  shops.map((shop) => ({ input: { shop } })),
);
await clock.advance(500);
// What `mulligan jobs show ID` says.
const [hold] = await mulligan.limits.holding(jobs[20]?.id ?? '');
console.log(
  `job 21 waits for ${hold?.limit}, key ${hold?.key}: ${hold?.reason}; ${hold?.before} of its key come before it`,
);
console.log(`done so far: ${done.join(', ')}`);

// As `mulligan limits set shopify --key large.example --rate none` would.
await mulligan.limits.set('shopify', { rate: null }, { key: 'large.example' });
await queue.drain();
console.log(`all ${done.length} are done, never more than ${most} of one shop at once`);

await mulligan.enqueueMany(
  applyEvent,
  [1, 2, 3, 4].map((event) => ({ input: { account: 'ada', event } })),
);
await queue.drain();
console.log(`events of ada in order, although the second failed twice: ${applied.join(', ')}`);
