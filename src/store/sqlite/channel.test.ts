import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { defineJob } from '../../definition.ts';
import { ClosedError, StoreUnavailableError } from '../../errors.ts';
import { Mulligan } from '../../mulligan.ts';
import { die, enqueueOne, settleOne, startOne, storedError } from '../conformance/builders.ts';
import { SqliteStore } from './store.ts';

const EVENTUALLY = { timeout: 20_000 };

/** A store whose threads die when told to: of an error, or without a word. */
class Mortal implements AsyncDisposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly path: string = join(this.folder, 'jobs.db');
  readonly #die: Int32Array = new Int32Array(new SharedArrayBuffer(4));
  readonly #starts: Int32Array = new Int32Array(new SharedArrayBuffer(4));
  #store: SqliteStore | null = null;

  static async open({ silently = true }: { silently?: boolean } = {}): Promise<Mortal> {
    const mortal = new Mortal();
    const module = new URL('../../../test/support/mortal-thread.ts', import.meta.url);
    const data = { die: mortal.#die, starts: mortal.#starts, silently };
    mortal.#store = await SqliteStore.open({ path: mortal.path, entry: { module, data } });
    return mortal;
  }

  get store(): SqliteStore {
    return this.#store as SqliteStore;
  }

  get starts(): number {
    return Atomics.load(this.#starts, 0);
  }

  /** Threads die from now on, also those that are started. */
  die(): void {
    Atomics.store(this.#die, 0, 1);
    Atomics.notify(this.#die, 0);
  }

  live(): void {
    Atomics.store(this.#die, 0, 0);
  }

  /** Lets the writing thread die with a call under way, which another connection's lock holds up. Answers its error. */
  async killWriter(): Promise<unknown> {
    using other = new DatabaseSync(this.path, { timeout: 10_000 });
    other.exec('BEGIN IMMEDIATE');
    const underWay = enqueueOne(this.store).catch((error: unknown) => error);
    this.die();
    const error = await underWay;
    this.live();
    other.exec('ROLLBACK');
    return error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store?.close();
    rmSync(this.folder, { recursive: true });
  }
}

describe('a store whose thread dies', () => {
  it.each([
    ['of an error', false, 'the database thread failed: an error nobody caught'],
    ['without a word', true, 'the database thread ended by itself'],
  ])('%s rejects what was under way, and goes on with the next call', async (_, silently, message) => {
    await using mortal = await Mortal.open({ silently });
    const { store, path } = mortal;
    const error = await mortal.killWriter();
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toHaveProperty('message', `${path}: ${message}`);
    const ids = [await enqueueOne(store), await enqueueOne(store)];
    expect((await store.list({ limit: 10 })).map(({ id }) => id).sort()).toEqual(ids.sort());
    // Two writers, one after the other, and a reader.
    expect(mortal.starts).toBe(3);
  });

  it('can be read when its log went with the only thread that had it open', async () => {
    await using mortal = await Mortal.open();
    await mortal.killWriter();
    expect(await mortal.store.list({ limit: 10 })).toEqual([]);
  });

  it('can be read when the reading thread dies', async () => {
    await using mortal = await Mortal.open();
    const id = await enqueueOne(mortal.store);
    await mortal.store.list({ limit: 1 });
    // Both threads go; only the writer had a call under way.
    await mortal.killWriter();
    await expect.poll(() => mortal.store.list({ limit: 10 }).catch(() => null), EVENTUALLY).toMatchObject([{ id }]);
  });

  it('still reports the commits of other processes, and hints at once at those that went unnoticed', async () => {
    await using mortal = await Mortal.open();
    const { store, path } = mortal;
    let heard = Promise.withResolvers<void>();
    store.onWork(() => heard.resolve());
    await mortal.killWriter();
    heard = Promise.withResolvers();
    await store.heartbeat([]);
    await heard.promise;
    // The first look of the new thread may come after the commit, which then is nothing new: commit until it is heard.
    heard = Promise.withResolvers();
    const other = await SqliteStore.open({ path });
    let isHeard = false;
    void heard.promise.then(() => {
      isHeard = true;
    });
    while (!isHeard) await enqueueOne(other);
    await other.close();
  });

  it('is worked on without any help', async () => {
    await using mortal = await Mortal.open();
    let completed = 0;
    const job = defineJob<null>({ name: 'job', run: () => {} });
    await using mulligan = await Mulligan.open(mortal.store, { jobs: [job], log: () => {} });
    const both = Promise.withResolvers<void>();
    mulligan.on('completed', () => ++completed === 2 && both.resolve());
    mulligan.work({ lease: '60s' });
    await mulligan.enqueue(job, null);
    await mortal.killWriter();
    await mulligan.enqueue(job, null);
    await both.promise;
  });

  it('starts none after it was closed, and none without a call', async () => {
    await using mortal = await Mortal.open();
    const { store } = mortal;
    await mortal.killWriter();
    expect(mortal.starts).toBe(1);
    await store.close();
    await expect(enqueueOne(store)).rejects.toThrow(ClosedError);
    await expect(store.list({ limit: 1 })).rejects.toThrow(ClosedError);
    expect(mortal.starts).toBe(1);
  });

  it('again and again starts a new one only after a pause', async () => {
    const from = performance.now();
    await using mortal = await Mortal.open();
    mortal.die();
    for (let deaths = 0; deaths < 4; ) await enqueueOne(mortal.store).catch(() => deaths++);
    expect(mortal.starts).toBeLessThanOrEqual(1 + (performance.now() - from) / 500);
    mortal.live();
    await expect.poll(() => enqueueOne(mortal.store).catch(() => null), EVENTUALLY).not.toBe(null);
  });

  it('does not take another file for its own that was put there meanwhile', async () => {
    await using mortal = await Mortal.open();
    const { store, path } = mortal;
    const theirs = await SqliteStore.open({ path: `${path}.theirs` });
    await theirs.close();
    await mortal.killWriter();
    renameSync(`${path}.theirs`, path);
    await expect(enqueueOne(store)).rejects.toThrow(`${path} was replaced while in use`);
    await expect(store.list({ limit: 1 })).rejects.toThrow(StoreUnavailableError);
  });
});

describe('an answer that cannot travel from the thread', () => {
  // The thread has a larger stack than the one that it answers: of the first, the message cannot be read; of the second, not sent.
  it.each([6_000, 100_000])('of %i levels rejects, and the thread goes on', async (levels) => {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const path = join(folder, 'jobs.db');
    const store = await SqliteStore.open({ path });
    try {
      const job = await startOne(store);
      await settleOne(store, job, die(), { error: storedError('broken'), outcome: 'failed' });
      using db = new DatabaseSync(path, { timeout: 10_000 });
      // What only a hand in the file can have written.
      db.prepare('UPDATE errors SET error = ?').run(`${'['.repeat(levels)}${']'.repeat(levels)}`);
      await expect(store.get([job.id])).rejects.toThrow(StoreUnavailableError);
      const other = await enqueueOne(store);
      expect(await store.get([other])).toMatchObject([{ id: other, state: 'ready' }]);
    } finally {
      await store.close();
      rmSync(folder, { recursive: true });
    }
  });
});
