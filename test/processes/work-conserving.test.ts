import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Claim, ClaimRequest, Store } from '../../src/store/store.ts';

const CONCURRENCY = 50;
const WORK_MS = 10;
/** How many of them fail again and again: so many that some are due at any time. */
const FAILING = 2_000;
const ENOUGH_RETRIES = 2_500;
/** Between the end of a run and the claim that fills its place, the worker waits for its next turn, to claim more at once. */
const MOST_TURNS = 10;

/** What a store was asked, seen from outside. */
class Watched {
  readonly store: Store;
  claimsUnderWay = 0;
  claimed = 0;
  /** The last claim took all it asked for, so it left due jobs behind. */
  wasFilled = false;
  readonly #onClaim: (request: ClaimRequest) => void;

  constructor(store: Store, onClaim: (request: ClaimRequest) => void) {
    this.#onClaim = onClaim;
    this.store = new Proxy(store, {
      get: (target, verb) => {
        if (verb === 'claim') return (request: ClaimRequest) => this.#claim(target, request);
        const value = Reflect.get(target, verb);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  async #claim(store: Store, request: ClaimRequest): Promise<Claim> {
    this.claimsUnderWay++;
    this.#onClaim(request);
    const claim = await store.claim(request);
    // As over a network.
    await sleep(2);
    this.claimsUnderWay--;
    this.claimed += claim.jobs.length;
    this.wasFilled = claim.jobs.length === request.limit;
    return claim;
  }
}

async function openSqlite(): Promise<{ store: Store; remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const store = await SqliteStore.open({ path: join(folder, 'jobs.db') });
  return { store, remove: () => rmSync(folder, { recursive: true }) };
}

const openMemory = async (): Promise<{ store: Store; remove: () => void }> => ({
  store: new MemoryStore(),
  remove: () => {},
});

describe.each([
  ['memory', openMemory],
  ['a SQLite file', openSqlite],
])('a worker on %s, while retries fail again and again and fresh work comes in', (_, open) => {
  it('leaves no place empty while a job is due', async () => {
    const { store, remove } = await open();
    let emptyPlacesNotAskedFor = 0;
    const watched = new Watched(store, ({ limit }) => {
      const buffered = watched.claimed - started;
      const empty = CONCURRENCY - worker.running - buffered;
      emptyPlacesNotAskedFor = Math.max(emptyPlacesNotAskedFor, empty - limit);
    });
    const failing = defineJob({
      name: 'failing',
      retry: { maxAttempts: 1_000_000, backoff: { kind: 'fixed', base: 1 }, jitter: 'none' },
      async run() {
        await sleep(WORK_MS);
        throw new Error('still down');
      },
    });
    const fresh = defineJob({ name: 'fresh', run: () => sleep(WORK_MS) });
    const mulligan = await Mulligan.open(watched.store, { jobs: [failing, fresh], log: () => {} });
    let started = 0;
    let retries = 0;
    mulligan.on('started', ({ attempt }) => {
      started++;
      if (attempt > 1) retries++;
    });
    await mulligan.enqueueMany(
      failing,
      Array(FAILING)
        .fill(null)
        .map((input) => ({ input })),
    );
    const worker = mulligan.work({ concurrency: CONCURRENCY });

    let turns = 0;
    let emptyTurns = 0;
    let mostEmptyTurns = 0;
    let made = 0;
    const isOver = (): boolean => retries >= ENOUGH_RETRIES;
    const produce = async (): Promise<void> => {
      for (; !isOver(); made++) {
        await mulligan.enqueue(fresh, null);
        await sleep(5);
      }
    };
    const watch = async (): Promise<void> => {
      for (; !isOver(); turns++) {
        await nextTurn();
        // All jobs that fail have failed once: from here on, claims bring mostly retries.
        if (retries === 0 || !watched.wasFilled) continue;
        const hasBuffered = watched.claimed > started;
        const isEmpty = worker.running < CONCURRENCY && !hasBuffered && watched.claimsUnderWay === 0;
        emptyTurns = isEmpty ? emptyTurns + 1 : 0;
        mostEmptyTurns = Math.max(mostEmptyTurns, emptyTurns);
      }
    };
    await Promise.all([produce(), watch()]);
    await mulligan.close();
    remove();
    expect(made).toBeGreaterThan(10);
    expect(turns).toBeGreaterThan(100);
    expect(emptyPlacesNotAskedFor).toBeLessThanOrEqual(0);
    expect(mostEmptyTurns).toBeLessThanOrEqual(MOST_TURNS);
  });
});
