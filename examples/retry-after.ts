// Retry-After bounds the wait from below, and no jitter shortens it.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defineJob, Mulligan, RetryAfter } from 'mulligan';

let requests = 0;
const server = createServer((_, response) => {
  if (++requests === 1) response.writeHead(429, { 'retry-after': '1' });
  response.end();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

const callServer = defineJob({
  name: 'server.call',
  retry: { backoff: { kind: 'fixed', base: '10ms' } },
  async run(_, { signal }) {
    const response = await fetch(url, { signal });
    // An error that carries its response: status and Retry-After are read from it.
    if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}`), { response });
  },
});

const askedToWait = defineJob({
  name: 'bank.transfer',
  retry: { backoff: { kind: 'fixed', base: '10ms' } },
  run(_, { attempt }) {
    // For servers that send no header. It takes a duration or a Date.
    if (attempt === 1) throw new RetryAfter('500ms', 'the bank opens in half a second');
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [callServer, askedToWait] });
const all = Promise.withResolvers<void>();
let completed = 0;
mulligan.on('retrying', ({ name, decision, delayMs, error }) => {
  const why = decision.kind === 'retry' ? decision.why : '';
  console.log(`${name}: ${error?.message}; again in ${delayMs} ms (${why}, rule ${decision.rule})`);
});
mulligan.on('completed', ({ name, attempt }) => {
  console.log(`${name}: completed on attempt ${attempt}`);
  if (++completed === 2) all.resolve();
});
mulligan.work();
await mulligan.enqueue(callServer, null);
await mulligan.enqueue(askedToWait, null);
await all.promise;
server.close();
