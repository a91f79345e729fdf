import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { claim, enqueueOne, fenceOf, idsOf } from '../conformance/builders.ts';
import type { ClaimedJob } from '../store.ts';
import { SqliteStore } from './store.ts';

const LEASE_MS = 30_000;

/** Two processes on one file, a run of the first one, and a program that can hold the file's lock. */
class Scene implements AsyncDisposable {
  readonly clock: VirtualClock = new VirtualClock();
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly #path: string = join(this.#folder, 'jobs.db');
  #worker: SqliteStore | null = null;
  #rescuer: SqliteStore | null = null;
  #program: DatabaseSync | null = null;

  static async open(): Promise<Scene> {
    const scene = new Scene();
    scene.#worker = await SqliteStore.open({ path: scene.#path, inline: scene.clock });
    scene.#rescuer = await SqliteStore.open({ path: scene.#path, inline: scene.clock });
    scene.#program = new DatabaseSync(scene.#path);
    return scene;
  }

  get worker(): SqliteStore {
    return this.#worker as SqliteStore;
  }

  get rescuer(): SqliteStore {
    return this.#rescuer as SqliteStore;
  }

  async start(): Promise<ClaimedJob> {
    await enqueueOne(this.worker);
    return (await claim(this.worker, { leaseMs: LEASE_MS })).jobs[0] as ClaimedJob;
  }

  sql(text: string): void {
    this.#program?.exec(text);
  }

  renew(job: ClaimedJob): Promise<unknown> {
    return this.worker.heartbeat([{ ...fenceOf(job), leaseMs: LEASE_MS }]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#program?.close();
    await this.worker.close();
    await this.rescuer.close();
    rmSync(this.#folder, { recursive: true });
  }
}

describe('a process that looks for expired leases', () => {
  it('finds none right after a program held the lock for longer than a lease, and live workers keep their runs', async () => {
    await using scene = await Scene.open();
    const { clock, rescuer } = scene;
    const job = await scene.start();
    for (let lock = 0; lock < 3; lock++) {
      scene.sql('BEGIN IMMEDIATE');
      await clock.advance(2 * LEASE_MS);
      const looked = rescuer.expired(10);
      await clock.advance(400);
      scene.sql('ROLLBACK');
      await clock.advance(10);
      expect(await looked).toEqual([]);
      await clock.advance(3_000);
      expect(await rescuer.expired(10)).toEqual([]);
      expect(await scene.renew(job)).toMatchObject([{ kept: true }]);
      await clock.advance(20_000);
      expect(await rescuer.expired(10)).toEqual([]);
      expect(await scene.renew(job)).toMatchObject([{ kept: true }]);
    }
  });

  it('finds those that were not renewed once workers had the time to', async () => {
    await using scene = await Scene.open();
    const { clock, rescuer } = scene;
    const job = await scene.start();
    scene.sql('BEGIN IMMEDIATE');
    await clock.advance(2 * LEASE_MS);
    const looked = rescuer.expired(10);
    await clock.advance(1_000);
    scene.sql('COMMIT');
    await clock.advance(10);
    expect(await looked).toEqual([]);
    await clock.advance(3_000 + LEASE_MS / 3 - 1_000);
    expect(await rescuer.expired(10)).toEqual([]);
    await clock.advance(2_000);
    expect(idsOf(await rescuer.expired(10))).toEqual([job.id]);
  });

  it('finds them at once when the lock was taken, but by processes that write in turn', async () => {
    await using scene = await Scene.open();
    const { clock, rescuer } = scene;
    const job = await scene.start();
    await clock.advance(2 * LEASE_MS);
    scene.sql("BEGIN IMMEDIATE; INSERT INTO strings (text) VALUES ('turn -1')");
    const looked = rescuer.expired(10);
    for (let turn = 0; turn < 20; turn++) {
      await clock.advance(100);
      scene.sql(`COMMIT; BEGIN IMMEDIATE; INSERT INTO strings (text) VALUES ('turn ${turn}')`);
    }
    scene.sql('COMMIT');
    await clock.advance(10);
    expect(idsOf(await looked)).toEqual([job.id]);
  });

  it('finds them at once when no worker renewed them, however long that is ago', async () => {
    await using scene = await Scene.open();
    const job = await scene.start();
    await scene.clock.advance(100 * LEASE_MS);
    expect(idsOf(await scene.rescuer.expired(10))).toEqual([job.id]);
  });
});
