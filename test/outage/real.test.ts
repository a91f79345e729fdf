import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

/*
 * A real HTTP service that is switched off and on, under two Mulligans on one real database. Without a gate the jobs that
 * wait die; behind one none does.
 *
 * \`npm run outage:soak\` is the same with 10,000 jobs and an outage of 10 minutes, after a warm-up that proves a rate. There
 * the calls of the recovery are measured, too.
 */
const isSoak = process.env.MULLIGAN_OUTAGE === 'soak';
const size = isSoak
  ? { warmUp: 2_000, jobs: 10_000, callMs: 300, outageMs: 600_000 }
  : { warmUp: 50, jobs: 600, callMs: 0, outageMs: 0 };
const BUSIEST_MS = 10_000;

/** Listens on the same port each time, and drops all connections when it goes down. */
class Service {
  readonly #sockets: Set<Socket> = new Set();
  #server: Server | null = null;
  #port = 0;
  /** When calls were answered. */
  served: number[] = [];

  get url(): string {
    return `http://127.0.0.1:${this.#port}/`;
  }

  async up(): Promise<void> {
    const server = createServer((_, response) => {
      this.served.push(performance.now());
      setTimeout(() => response.end('ok'), size.callMs);
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async down(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server?.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

const WARM_UP = size.warmUp;
const JOBS = size.jobs;
/** Of each of the two workers. */
const CONCURRENCY = 10;

/** Calls per second in the 10 s that had most of them. */
function busiest(times: readonly number[]): number {
  let [most, from] = [0, 0];
  for (const [index, at] of times.entries()) {
    while ((times[from] as number) <= at - BUSIEST_MS) from++;
    most = Math.max(most, index - from + 1);
  }
  return (1_000 * most) / BUSIEST_MS;
}

const folder = mkdtempSync(join(tmpdir(), 'mulligan-outage-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const databases = new AsyncDisposableStack();
afterAll(() => databases.disposeAsync());
const stores: [string, () => Promise<string>][] = [
  ['SQLite', async () => `sqlite:${join(folder, `${files++}.db`)}`],
  ['PostgreSQL', async () => databases.use(await TestDatabase.create(inject('postgresUrl'))).url],
];

describe.each(stores)('a service that is switched off and on, %s', (_, target) => {
  const service = new Service();
  beforeAll(() => service.up());
  afterAll(() => service.down());

  interface Seen {
    readonly dead: number;
    readonly completed: number;
    readonly mostAttempts: number;
    readonly refusedCalls: number;
    /** Of them, those after a gate had opened: what was claimed by then. Reported, not bounded. */
    readonly refusedSinceOpen: number;
    readonly changes: readonly string[];
    /** Calls per second before the outage and after it: in its busiest 10 s, and on the whole. */
    readonly rates: { readonly proven: number; readonly busiest: number; readonly recovery: number };
  }

  async function outage(resource: 'service' | false): Promise<Seen> {
    const url = await target();
    let [dead, completed, mostAttempts, refusedCalls, refusedSinceOpen] = [0, 0, 0, 0, 0];
    const changes: string[] = [];
    const call = defineJob<number>({
      name: 'call',
      resource,
      run: async () => {
        const response = await fetch(service.url).catch((error) => {
          refusedCalls++;
          if (changes.some((change) => change.startsWith('opened: '))) refusedSinceOpen++;
          throw error;
        });
        await response.text();
      },
    });
    const mulligans = [
      await Mulligan.open(url, { jobs: [call], log: () => {} }),
      await Mulligan.open(url, { jobs: [call], log: () => {} }),
    ];
    const warm = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    for (const mulligan of mulligans) {
      const count = () => {
        if (completed === WARM_UP) warm.resolve();
        if (dead + completed === WARM_UP + JOBS) over.resolve();
      };
      mulligan.on('completed', ({ attempt }) => {
        completed++;
        mostAttempts = Math.max(mostAttempts, attempt);
        count();
      });
      mulligan.on('dead', () => {
        dead++;
        count();
      });
      mulligan.on('gate', ({ change, rule }) => {
        changes.push(`${change}: ${rule}`);
        if (change === 'opened') opened.resolve();
      });
    }
    const [producer] = mulligans as [Mulligan, Mulligan];
    await producer.enqueueMany(
      call,
      Array.from({ length: WARM_UP }, (_, n) => n).map((input) => ({ input })),
    );
    for (const mulligan of mulligans) mulligan.work({ concurrency: CONCURRENCY });
    await warm.promise;
    const proven = busiest(service.served);
    await service.down();
    service.served = [];
    await producer.enqueueMany(
      call,
      Array.from({ length: JOBS }, (_, n) => n).map((input) => ({ input })),
    );
    await (resource === false ? over.promise : opened.promise);
    if (resource !== false) await new Promise((resolve) => setTimeout(resolve, size.outageMs));
    await service.up();
    const upAt = performance.now();
    await over.promise;
    const recovery = (1_000 * service.served.length) / (performance.now() - upAt);
    await Promise.all(mulligans.map((mulligan) => mulligan.close()));
    const rates = { proven, busiest: busiest(service.served), recovery };
    return { dead, completed, mostAttempts, refusedCalls, refusedSinceOpen, changes, rates };
  }

  test('without a gate all die; behind one none does', { timeout: 180_000 + 4 * size.outageMs }, async () => {
    const without = await outage(false);
    expect(without).toMatchObject({ dead: JOBS, completed: WARM_UP });
    const seen = await outage('service');
    expect(seen).toMatchObject({ dead: 0, completed: WARM_UP + JOBS });
    expect(seen.mostAttempts).toBeLessThanOrEqual(2);
    expect(seen.refusedCalls).toBeLessThan(without.refusedCalls / 10);
    expect(seen.changes.some((change) => change.startsWith('opened: '))).toBe(true);
    expect(seen.changes).toContain('recovering: probes alive');
    if (isSoak) {
      expect(seen.refusedCalls).toBeLessThan(without.refusedCalls / 100);
      expect(seen.rates.busiest).toBeLessThanOrEqual(1.5 * seen.rates.proven);
      expect(seen.rates.recovery).toBeGreaterThanOrEqual(seen.rates.proven / 1.5);
    }
    console.info('a real service', JSON.stringify({ without: without.refusedCalls, ...seen }));
  });
});
