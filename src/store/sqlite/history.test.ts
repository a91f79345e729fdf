import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { withStore } from '../../../test/support/sqlite-file.ts';
import { complete, die, settleOne, startOne, storedError } from '../conformance/builders.ts';
import { ERROR_SERIES } from '../error-history.ts';
import { rollUpReads } from './history.ts';

it('adding up searches the ledger by indexes, and sorts nothing', () =>
  withStore(async ({ store, path }) => {
    await settleOne(store, await startOne(store), complete);
    using db = new DatabaseSync(path, { readOnly: true });
    for (const sql of rollUpReads) {
      const plan = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail);
      expect(
        plan.filter((detail) => !/^SEARCH \w+ USING (COVERING )?(INDEX|INTEGER PRIMARY KEY|PRIMARY KEY)/.test(detail)),
      ).toEqual([]);
    }
  }));

it('while nothing ends, nothing is written', () =>
  withStore(async ({ store, path, clock }) => {
    await settleOne(store, await startOne(store), complete);
    await clock.advance(60_000);
    await store.rollUp();
    using db = new DatabaseSync(path, { readOnly: true });
    const version = (): unknown => db.prepare('PRAGMA data_version').get();
    const before = version();
    await clock.advance(60_000);
    expect(await store.rollUp()).toEqual({ isDone: true });
    expect(version()).toEqual(before);
    await settleOne(store, await startOne(store), complete);
    await clock.advance(60_000);
    const settled = version();
    await store.rollUp();
    expect(version()).not.toEqual(settled);
  }));

it('kinds of error that failed within the last hour make no room for others', () =>
  withStore(async ({ store, clock }) => {
    const fail = async (fingerprint: string): Promise<void> =>
      settleOne(store, await startOne(store), die(), { error: { ...storedError('each another'), fingerprint } });
    const isCounted = async (fingerprint: string): Promise<boolean> => {
      await clock.advance(2_000);
      while (!(await store.rollUp()).isDone);
      const range = { from: 0, to: clock.now() - (clock.now() % 3_600_000) + 3_600_000, stepMs: 3_600_000 };
      return (await store.errorHistory({ ...range, fingerprint })).series.length === 1;
    };
    for (let kind = 0; kind < ERROR_SERIES; kind++) await fail(`kind-${kind};`);
    expect(await isCounted('kind-0;')).toBe(true);
    await clock.advance(10 * 60_000);
    await fail('refused');
    expect(await isCounted('refused')).toBe(false);
    await clock.advance(2 * 3_600_000);
    await fail('kind-0;');
    expect(await isCounted('kind-0;')).toBe(true);
    await fail('late');
    expect(await isCounted('late')).toBe(true);
  }));
