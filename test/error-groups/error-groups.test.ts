import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { newSchema, runSql } from '../support/postgres-schema.ts';
import { kinds } from './kinds.ts';

/** MULLIGAN_DEAD=100000 for the number that must hold. */
const DEAD = Number(process.env.MULLIGAN_DEAD ?? 2_400);
const perKind = kinds.map((_, kind) => Math.ceil((DEAD - kind) / kinds.length));
const AT_ONCE = 10_000;

const fail = defineJob<number>({
  name: 'fail',
  retry: { maxAttempts: 1 },
  resource: false,
  run: (kind) => kinds[kind]?.(),
});
const other = defineJob<number>({
  name: 'other',
  retry: { maxAttempts: 1 },
  resource: false,
  run: (kind) => kinds[kind]?.(),
});

interface Opened {
  readonly url: string;
  cleanUp(): Promise<void> | void;
}

const stores: Readonly<Record<string, () => Opened>> = {
  memory: () => ({ url: 'memory:', cleanUp: () => {} }),
  sqlite() {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    return { url: `sqlite:${join(folder, 'jobs.db')}`, cleanUp: () => rmSync(folder, { recursive: true }) };
  },
  postgres() {
    const schema = newSchema();
    const server = inject('postgresUrl');
    const url = new URL(server);
    url.searchParams.set('schema', schema);
    return { url: `${url}`, cleanUp: async () => void (await runSql(server, `DROP SCHEMA ${schema} CASCADE`)) };
  },
};

/** Runs jobs of all kinds with two names until they are dead. */
async function buryAll(mulligan: Mulligan): Promise<void> {
  const buried = Promise.withResolvers<void>();
  let dead = 0;
  mulligan.on('dead', () => {
    if (++dead === DEAD) buried.resolve();
  });
  const inputs = Array.from({ length: DEAD }, (_, index) => index % kinds.length);
  for (let at = 0; at < DEAD; at += AT_ONCE) {
    const part = inputs.slice(at, at + AT_ONCE);
    await mulligan.enqueueMany(
      fail,
      part.filter((_, index) => index % 5 > 0).map((input) => ({ input })),
    );
    await mulligan.enqueueMany(
      other,
      part.filter((_, index) => index % 5 === 0).map((input) => ({ input })),
    );
  }
  const worker = mulligan.work({ concurrency: 200 });
  await buried.promise;
  await worker.stop();
}

describe.each(Object.keys(stores))('on %s', (store) => {
  it(`${DEAD} dead jobs of 12 kinds with random ids fall into exactly 12 groups`, { timeout: 600_000 }, async () => {
    const { url, cleanUp } = (stores[store] as () => Opened)();
    const mulligan = await Mulligan.open(url, { jobs: [fail, other], log: () => {} });
    try {
      await buryAll(mulligan);
      const groups = await mulligan.errors.list({ limit: 1_000 });
      expect(groups.map(({ dead }) => dead)).toEqual(perKind);
      for (const [index, group] of groups.entries()) {
        const jobs = perKind[index];
        expect(group).toMatchObject({ failing: 0, failures: jobs, jobs, recovered: 0, recoveredShare: 0 });
        expect(group.names.map(({ name }) => name).sort()).toEqual(['fail', 'other']);
        const found = group.sample && (await mulligan.jobs.get(group.sample.jobId));
        expect(found?.lastError).toEqual(group.sample?.error);
      }
      const [{ fingerprint } = { fingerprint: '' }] = groups;
      expect(await mulligan.errors.show(fingerprint.slice(0, 10))).toEqual(groups[0]);
    } finally {
      await mulligan.close();
      await cleanUp();
    }
  });
});

it('the fingerprint of an error is the same on every store', async () => {
  const found = await Promise.all(
    Object.values(stores).map(async (open) => {
      const { url, cleanUp } = open();
      const mulligan = await Mulligan.open(url, { jobs: [fail], log: () => {} });
      const dead = Promise.withResolvers<void>();
      let count = 0;
      mulligan.on('dead', () => void (++count === kinds.length && dead.resolve()));
      await mulligan.enqueueMany(
        fail,
        [...kinds.keys()].map((input) => ({ input })),
      );
      mulligan.work();
      await dead.promise;
      const jobs = await mulligan.dead.list();
      await mulligan.close();
      await cleanUp();
      return Object.fromEntries(jobs.map(({ payload, lastError }) => [payload, lastError?.fingerprint]));
    }),
  );
  expect(new Set(found.map((fingerprints) => JSON.stringify(fingerprints))).size).toBe(1);
  expect(new Set(Object.values(found[0] ?? {})).size).toBe(kinds.length);
});
