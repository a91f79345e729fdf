import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Served, served } from './served.ts';

/* Clients that hold what they can. Whatever they do, others are answered. */

async function open(url: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () => connect({ host: hostname, port: Number(port) }));
  for (const socket of sockets) socket.on('error', () => {});
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

async function expectResponsive({ call }: Served): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 20 }, () => call('POST', '/api/v1/jobs', { name: 'a' })));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
}

it('many connections that say nothing keep no other client from being served', async () => {
  const server = await served();
  await open(server.url, Number(process.env.MULLIGAN_IDLE_CONNECTIONS ?? 500));
  await expectResponsive(server);
});

it('requests that trickle in byte by byte keep no other client from being served', async () => {
  const server = await served();
  const sockets = await open(server.url, 50);
  for (const socket of sockets) {
    socket.write(
      'POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n',
    );
  }
  await expectResponsive(server);
  for (const socket of sockets) socket.write('\r\n{"name"');
  await expectResponsive(server);
});

it('a request whose headers do not end is answered with 408, and its connection is closed', async () => {
  const server = await served({ server: { headersTimeout: '100ms' } });
  const [socket] = await open(server.url, 1);
  let text = '';
  socket?.on('data', (part) => {
    text += part;
  });
  socket?.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n');
  await once(socket as Socket, 'close');
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
});

it('a connection that never says anything is closed, and one that has asked is kept', async () => {
  const server = await served({ server: { headersTimeout: '10ms' } });
  const [silent, asking] = (await open(server.url, 2)) as [Socket, Socket];
  asking.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(asking, 'data');
  silent.resume();
  await once(silent, 'close');
  asking.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(String(await once(asking, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
});

it('bodies that are broken off leave nothing behind', async () => {
  const server = await served();
  const sockets = await open(server.url, 50);
  const head =
    'POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n';
  for (const socket of sockets) socket.write(`${head}{"name":"a","input":"`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const socket of sockets) socket.destroy();
  await expectResponsive(server);
  expect((await server.call('GET', '/api/v1/jobs/count')).body.count).toBe(20);
});

it('no more connections are taken than allowed, and those that are taken are served', async () => {
  const server = await served({ server: { maxConnections: 10 } });
  const sockets = await open(server.url, 30);
  const kept = (): Socket[] => sockets.filter(({ closed }) => !closed);
  await vi.waitUntil(() => kept().length <= 10, { timeout: 60_000 });
  for (const socket of kept()) {
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
  }
  expect(kept()).toHaveLength(10);
});

it('a worker that hangs up while it waits gets no job, and the next one does', async () => {
  const server = await served();
  const gone = new AbortController();
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ worker: 'gone', wait: '10s' });
  const waiting = fetch(`${server.url}/api/v1/claim`, { method: 'POST', headers, body, signal: gone.signal }).catch(
    () => {},
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  gone.abort();
  await waiting;
  // The server is to have noticed.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const { id } = await server.mulligan.enqueue('a', 1);
  const { body: claimed } = await server.call('POST', '/api/v1/claim', { worker: 'next', wait: '5s' });
  expect(claimed.jobs).toMatchObject([{ id }]);
});
