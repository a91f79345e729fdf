// The HTTP API of a queue, mounted in a Fastify application beside its own routes.
// Run it: node examples/fastify.ts

import { fastify } from 'fastify';
import { Mulligan } from 'mulligan';
import { createServer, createToken, nodeHandler } from 'mulligan/server';

await using mulligan = await Mulligan.open('memory:');
// In an application: `mulligan token create`, once, and tokenFile here.
const { token, stored } = createToken('example', ['read', 'write']);
const queue = await createServer(mulligan, { tokens: [stored], basePath: '/queue' });
const handle = nodeHandler(queue);

const app = fastify();
app.get('/', async () => 'the application itself');
await app.register(async (scope) => {
  // The API reads its own bodies.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.all('/queue/*', (request, reply) => {
    reply.hijack();
    handle(request.raw, reply.raw);
  });
});

const url = await app.listen({ host: '127.0.0.1', port: 0 });
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const body = JSON.stringify({ name: 'email.send', input: { to: 'ada@example.com' } });
const enqueued = await fetch(`${url}/queue/api/v1/jobs`, { method: 'POST', headers, body });
console.log(enqueued.status, await enqueued.json());
console.log(await (await fetch(url)).text());

await queue.close();
await app.close();
