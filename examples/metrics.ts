// Three ways to monitor: events of this process, totals of the whole store, and a page for Prometheus.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defineJob, Mulligan } from 'mulligan';

const flaky = defineJob<{ fails: number }>({
  name: 'flaky',
  retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '20ms' } },
  run({ fails }, { attempt }) {
    if (attempt <= fails) throw new Error('not yet');
  },
});

// No log here: the events below say what died.
await using mulligan = await Mulligan.open('memory:', { jobs: [flaky], log: () => {} });

// Events: what just happened in this process.
const ended = Promise.withResolvers<void>();
let open = 4;
const end = (): void => {
  if (--open === 0) ended.resolve();
};
mulligan.on('completed', end);
mulligan.on('dead', ({ id, reason, error }) => {
  console.log(`dead: job ...${id.slice(-4)} (${reason}): ${error?.message}`);
  end();
});

mulligan.work();
await mulligan.enqueueMany(flaky, [
  { input: { fails: 0 } },
  { input: { fails: 1 } },
  { input: { fails: 2 } },
  { input: { fails: 9 } },
]);
await ended.promise;

// Stats: over all processes, since the store was made.
const { totalRetries, successfulRetries, retrySuccessRate, states } = await mulligan.stats();
console.log(`${totalRetries} retries, ${successfulRetries} successful: ${(100 * retrySuccessRate).toFixed(0)} %`);
console.log(`${states.completed} completed, ${states.dead} dead`);

// Metrics: an endpoint is three lines in whatever HTTP server you have.
const server = createServer(async (_, response) => {
  response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8').end(await mulligan.metrics());
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const scraped = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
for (const line of (await scraped.text()).split('\n')) {
  if (/^mulligan_(runs|retries|retry_exhausted|dead)_total/.test(line)) console.log(line);
}
server.close();
