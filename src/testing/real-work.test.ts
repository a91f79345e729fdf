import {
  createHmac,
  generateKeyPair,
  generateKeyPairSync,
  pbkdf2,
  pbkdf2Sync,
  randomBytes,
  scrypt,
  scryptSync,
} from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { MessageChannel, Worker } from 'node:worker_threads';
import { createGzip, gzip, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { defineJob } from '../definition.ts';
import type { Job } from '../job.ts';
import { Mulligan } from '../mulligan.ts';
import { testQueue } from './queue.ts';

const TIMEOUT_MS = 10_000;

/** Drains one job with a timeout, which its signal passes on, and one attempt. */
async function drained(
  run: (signal: AbortSignal, queue: Awaited<ReturnType<typeof testQueue>>) => unknown,
): Promise<Job & { virtualMs: number }> {
  const job = defineJob<null>({
    name: 'job',
    timeout: TIMEOUT_MS,
    retry: { maxAttempts: 1 },
    run: async (_, { signal }) => void (await run(signal, queue)),
  });
  await using queue = await testQueue({ jobs: [job] });
  const { id } = await queue.mulligan.enqueue(job, null);
  await queue.drain();
  const ended = (await queue.mulligan.jobs.get(id)) as Job;
  return { ...ended, virtualMs: queue.clock.monotonic() };
}

const hang = (): Promise<void> => new Promise(() => {});
const completed = { state: 'completed', runs: 1, lastError: null };
const timedOut = { state: 'dead', lastError: { name: 'TimeoutError' } };

describe('a drain waits in real time while a handler waits for', () => {
  let url = '';
  const body = 'gzip '.repeat(10_000_000);
  const compressed = gzipSync(body);
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip', connection: 'close' }).end(compressed);
  });
  beforeAll(async () => {
    // Vitest loads modules over its own pipe, which a drain cannot tell from an idle one: load those of the store before.
    const folder = await mkdtemp(join(tmpdir(), 'mulligan-drain-'));
    await (await Mulligan.open(`sqlite:${join(folder, 'first.db')}`, { log: () => {} })).close();
    await rm(folder, { recursive: true });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  const key = { name: 'HMAC', hash: 'SHA-256' };
  const work: Record<string, () => unknown> = {
    scrypt: () => promisify(scrypt)('password', 'salt', 64),
    pbkdf2: () => promisify(pbkdf2)('password', 'salt', 200_000, 64, 'sha512'),
    generateKeyPair: () => promisify(generateKeyPair)('rsa', { modulusLength: 2048 }),
    'subtle.digest': () => crypto.subtle.digest('SHA-256', new Uint8Array(40_000_000)),
    'subtle.generateKey': () =>
      crypto.subtle.generateKey(
        { name: 'RSA-PSS', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
        true,
        ['sign'],
      ),
    'subtle.sign, 20 times in a row': async () => {
      const data = new Uint8Array(2_000_000);
      const signer = await crypto.subtle.importKey('raw', new Uint8Array(32), key, false, ['sign']);
      for (let count = 0; count < 20; count++) await crypto.subtle.sign('HMAC', signer, data);
    },
    'gzip of 20 MB': () => promisify(gzip)(randomBytes(20_000_000)),
    'a stream pipeline through createGzip': async () => {
      const from = new PassThrough();
      from.end(randomBytes(5_000_000));
      await pipeline(from, createGzip(), async (chunks) => {
        const hash = createHmac('sha256', 'key');
        for await (const chunk of chunks) hash.update(chunk as Buffer);
      });
    },
    'fetch of a gzip-encoded body': async () => expect(await (await fetch(url)).text()).toBe(body),
    'a Mulligan on SQLite': async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mulligan-drain-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      await using inner = await Mulligan.open(`sqlite:${join(folder, 'inner.db')}`, { log: () => {} });
      for (let count = 0; count < 50; count++) await inner.enqueue('inner', count);
      expect((await inner.stats()).states.ready).toBe(50);
    },
    'a worker thread that it starts': async () => {
      const late =
        "const { parentPort } = require('worker_threads'); setTimeout(() => parentPort.postMessage('late'), 50);";
      const thread = new Worker(late, { eval: true });
      expect(await once(thread, 'message')).toEqual(['late']);
      await thread.terminate();
    },
    'setImmediate, 10,000 times in a row': async () => {
      for (let count = 0; count < 10_000; count++) await new Promise<void>((done) => void setImmediate(done));
    },
  };
  it.each(Object.entries(work))('%s', async (_, run) => {
    expect(await drained(run)).toMatchObject(completed);
  });

  it('scrypt, after it had waited for the virtual clock', async () => {
    const job = await drained(async (_, { clock }) => {
      await new Promise<void>((done) => void clock.after(5_000, done));
      await promisify(scrypt)('password', 'salt', 64);
    });
    expect(job).toMatchObject(completed);
  });
});

describe('a drain fires the timeout of a hanging handler in virtual time, after the handler', () => {
  const before: Record<string, () => unknown> = {
    'has done nothing': () => {},
    'has called the synchronous forms of crypto and zlib': () => {
      randomBytes(16);
      scryptSync('password', 'salt', 64);
      pbkdf2Sync('password', 'salt', 10, 64, 'sha512');
      generateKeyPairSync('ec', { namedCurve: 'P-256' });
      gzipSync('text');
    },
    'has had real work done': async () => {
      await promisify(scrypt)('password', 'salt', 64);
      await promisify(gzip)('text');
      await crypto.subtle.digest('SHA-256', new Uint8Array(8));
    },
    'has left a stream and a channel open': () => {
      createGzip();
      new MessageChannel().port1.on('message', () => {}).unref();
    },
  };
  it.each(Object.entries(before))('%s', async (_, first) => {
    const job = await drained(async () => {
      await first();
      await hang();
    });
    expect(job).toMatchObject(timedOut);
    expect(job.virtualMs).toBeGreaterThanOrEqual(TIMEOUT_MS);
  });

  it('hangs in each of two drains at once', async () => {
    const both = await Promise.all([drained(hang), drained(hang)]);
    expect(both).toMatchObject([timedOut, timedOut]);
  });

  it('has set an interval of its own, which leaves the timeout to real time', async () => {
    const job = defineJob<null>({
      name: 'job',
      timeout: 200,
      retry: { maxAttempts: 1 },
      run: (_, { signal }) => {
        const interval = setInterval(() => {}, 1);
        signal.addEventListener('abort', () => clearInterval(interval));
        return hang();
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject(timedOut);
  });
});

it('a drain takes no virtual time to find that a handler waits for nothing real', async () => {
  const startedAt: number[] = [];
  const job = defineJob<number>({
    name: 'job',
    limit: { name: 'in order', concurrency: 1 },
    async run() {
      startedAt.push(queue.clock.monotonic());
      await new Promise<void>((done) => void queue.clock.after(1_000, done));
    },
  });
  await using queue = await testQueue({ jobs: [job] });
  await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }, { input: 3 }]);
  await queue.drain();
  expect(startedAt).toEqual([0, 1_000, 2_000]);
});
