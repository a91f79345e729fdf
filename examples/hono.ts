// The HTTP API of a queue, mounted in a Hono application. The same on any platform that takes a fetch handler.
// Run it: node examples/hono.ts

import { Hono } from 'hono';
import { Mulligan } from 'mulligan';
import { createServer, createToken } from 'mulligan/server';

await using mulligan = await Mulligan.open('memory:');
// In an application: `mulligan token create`, once, and tokenFile here.
const { token, stored } = createToken('example', ['read', 'write']);
const queue = await createServer(mulligan, { tokens: [stored], hosts: ['app.example.com'] });

const app = new Hono();
app.get('/', (context) => context.text('the application itself'));
app.mount('/queue', (request) => queue.fetch(request));

const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const body = JSON.stringify({ name: 'email.send', input: { to: 'ada@example.com' } });
const enqueued = await app.request('https://app.example.com/queue/api/v1/jobs', { method: 'POST', headers, body });
console.log(enqueued.status, await enqueued.json());
console.log(await (await app.request('https://app.example.com/')).text());

await queue.close();
