import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { withStore } from '../../../test/support/sqlite-file.ts';
import { complete, settleOne, startOne } from '../conformance/builders.ts';
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
