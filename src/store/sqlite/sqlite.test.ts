import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, inject, it } from 'vitest';
import { someCases } from '../../../test/support/some-cases.ts';
import { expectSoundFile } from '../../../test/support/sound-file.ts';
import { expectErrorsStoredOnce } from '../../../test/support/stored-errors.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { NEVER } from './restrictions.ts';
import { SqliteStore } from './store.ts';

async function openInline(): Promise<StoreHarness & { readonly path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const path = join(folder, 'jobs.db');
  const clock = new VirtualClock();
  const store = await SqliteStore.open({ path, inline: clock });
  return {
    store,
    path,
    advance: (ms) => clock.advance(ms),
    async close() {
      await store.close();
      expectSoundFile(path);
      expectExactTimes(path, clock.now());
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * Each partition is admissible from when its first job may start, or for some time already. A gated one is so to
 * `claimGated`, and never to a claim.
 */
function expectExactTimes(path: string, now: number): void {
  using db = new DatabaseSync(path, { readOnly: true });
  const wrong = db
    .prepare(`
      SELECT id, admissible_at, gated_at, startsAt FROM (
        SELECT p.*, coalesce(gated_at, admissible_at) AS at,
          max(coalesce(gate_at, held_until), (SELECT min(due_at) FROM jobs j WHERE j.partition = p.id)) AS startsAt
        FROM partitions p)
      WHERE CASE WHEN startsAt > ?1 THEN at <> startsAt ELSE at > ?1 END
        OR (gate_at IS NULL) <> (gated_at IS NULL)
        OR (gate_at IS NOT NULL AND (held_until <> ?2 OR admissible_at <> ?2))`)
    .all(now, NEVER);
  expect(wrong).toEqual([]);
}

/** The clock of the thread runs on by itself; the suite shifts it through shared memory. */
async function openThreaded(): Promise<StoreHarness> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const shift = new Float64Array(new SharedArrayBuffer(8));
  const entry = { module: new URL(inject('movableThread')), data: { shift } };
  const store = await SqliteStore.open({ path: join(folder, 'jobs.db'), entry });
  return {
    store,
    advance(ms) {
      shift[0] = (shift[0] as number) + ms;
    },
    async close() {
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

describe('the SQLite store keeps the contract, in the calling thread', () => {
  for (const { verb, name, run } of storeConformance(openInline)) {
    it(`${verb}: ${name}`, run);
  }
});

describe.concurrent('the SQLite store keeps the contract, on a thread of its own', () => {
  for (const { verb, name, run } of someCases(storeConformance(openThreaded), 8)) {
    it(`${verb}: ${name}`, run);
  }
});

describe('what SQLite keeps beside the jobs', () => {
  it('is one error for all runs of a settlement, which goes with the last of them', async () => {
    const harness = await openInline();
    await expectErrorsStoredOnce(harness, {
      async read() {
        using db = new DatabaseSync(harness.path, { readOnly: true });
        const rows = db.prepare('SELECT uses, error FROM errors ORDER BY id').all();
        return rows.map((row) => ({ ...row })) as { uses: number; error: string }[];
      },
      expectSound: async () => expectSoundFile(harness.path),
    });
    await harness.close();
  });
});
