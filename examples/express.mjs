// The HTTP API of a queue, mounted in an Express application beside its own routes.
// Run it: node examples/express.mjs

import { once } from 'node:events';
import express from 'express';
import { Mulligan } from 'mulligan';
import { createServer, createToken, nodeHandler } from 'mulligan/server';

const mulligan = await Mulligan.open('memory:');
// In an application: `mulligan token create`, once, and tokenFile here.
const { token, stored } = createToken('example', ['read', 'write']);
const queue = await createServer(mulligan, { tokens: [stored] });

const app = express();
// Before express.json(): the API reads its own bodies.
app.use('/queue', nodeHandler(queue));
app.get('/', (_request, response) => response.send('the application itself'));

const http = app.listen(0, '127.0.0.1');
await once(http, 'listening');
const url = `http://127.0.0.1:${http.address().port}`;
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const body = JSON.stringify({ name: 'email.send', input: { to: 'ada@example.com' } });
const enqueued = await fetch(`${url}/queue/api/v1/jobs`, { method: 'POST', headers, body });
console.log(enqueued.status, await enqueued.json());
console.log(await (await fetch(url)).text());

http.close();
http.closeAllConnections();
await queue.close();
await mulligan.close();
