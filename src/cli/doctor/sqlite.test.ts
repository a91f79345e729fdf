import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { heldWords, holdJobs } from '../../../test/support/held-jobs.ts';
import { defineJob } from '../../definition.ts';
import { Mulligan } from '../../mulligan.ts';
import type { Check } from './check.ts';
import { examine } from './examine.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mulligan-doctor-'));
  path = join(folder, 'jobs.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

async function checks(): Promise<ReadonlyMap<string, Check>> {
  const all = await examine({ url: `sqlite:${path}`, from: '--db' });
  return new Map(all.map((check) => [check.name, check]));
}

async function newFile(): Promise<void> {
  await (await Mulligan.open(`sqlite:${path}`)).close();
}

function change(sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

describe('a SQLite file', () => {
  it('that is sound has nothing bad about it, and nothing is left beside it', async () => {
    await newFile();
    const found = await checks();
    const others = [...found.values()].filter(({ name }) => name !== 'disk');
    expect(others.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect([...found.keys()]).toEqual([
      ...['sqlite', 'disk', 'schema', 'journal', 'size', 'integrity', 'writing'],
      ...['jobs', 'dead jobs', 'waiting', 'workers', 'leases', 'paused queues', 'gates', 'schedules'],
    ]);
    expect(found.get('writing')?.found).toContain('synchronous is FULL');
    expect(readdirSync(folder)).toEqual(['jobs.db']);
  });

  it('tells of jobs that no worker runs or rescues', async () => {
    await using mulligan = await Mulligan.open(`sqlite:${path}`, { log: () => {} });
    for (const queue of ['a', 'b', 'c']) await mulligan.enqueue('x', null, { queue });
    await mulligan.queues.pause('c');
    await mulligan.gates.open('smtp', { by: 'ana' });
    const past = Date.now() - 120_000;
    change(
      `UPDATE jobs SET due_at = ${past}; UPDATE jobs SET state = 3, partition = NULL, lease_ends_at = ${past} WHERE seq = 2`,
    );
    const found = await checks();
    expect(found.get('jobs')?.found).toBe('2 ready, 1 running');
    expect(found.get('waiting')).toMatchObject({
      health: 'warn',
      found: expect.stringMatching(
        /^the oldest due jobs have waited for 2m.* in a \(x\); 1 due job in paused queues: c \(1 job\)$/,
      ),
    });
    expect(found.get('workers')).toMatchObject({
      health: 'warn',
      found: 'none is alive, and jobs wait: x (2 jobs)',
    });
    expect(found.get('leases')).toMatchObject({ health: 'warn', found: expect.stringMatching(/^1 lease has expired/) });
    expect(found.get('paused queues')).toMatchObject({ health: 'warn', found: 'c' });
    expect(found.get('gates')).toMatchObject({ health: 'warn', found: '1 gate not closed: smtp (open, pinned)' });
  });

  it('says how many due jobs wait, and what holds them', async () => {
    await using mulligan = await Mulligan.open(`sqlite:${path}`, { log: () => {} });
    await holdJobs(mulligan);
    expect((await checks()).get('waiting')).toMatchObject({
      ...{ health: 'warn', found: heldWords, advice: 'mulligan limits show NAME says what is full' },
    });
  });

  it('tells of names that no live worker knows, of queues that none serves, and of what died', async () => {
    const job = defineJob<null>({
      name: 'known',
      retry: { maxAttempts: 1 },
      run: () => Promise.reject(new Error('no')),
    });
    await using mulligan = await Mulligan.open(`sqlite:${path}`, { jobs: [job], log: () => {} });
    const worker = mulligan.work({ queues: ['default'] });
    await mulligan.enqueue(job, null);
    await mulligan.enqueueMany('knwon', [{ input: 1 }, { input: 2 }]);
    await mulligan.enqueue(job, null, { queue: 'apart', delay: '1h' });
    await worker.whenIdle();
    const found = await checks();
    expect(found.get('workers')).toMatchObject({
      health: 'ok',
      found: expect.stringMatching(/^1 worker, last seen \S+ ago$/),
    });
    expect(found.get('job names')).toMatchObject({ health: 'warn', found: 'no live worker knows knwon (2 jobs)' });
    expect(found.get('queues')).toMatchObject({ health: 'warn', found: 'no live worker serves apart (1 job)' });
    expect(found.get('dead jobs')).toMatchObject({ health: 'ok', found: '1 job: known (1)' });
    expect(found.get('dead jobs')?.advice).toContain('mulligan errors list');
    expect(found.get('rejected payloads')).toBeUndefined();
    change('UPDATE worker_registry SET seen_at = seen_at - 120000');
    expect((await checks()).get('workers')?.found).toMatch(
      /^none is alive; 1 was lost: \S+ \(2m.* ago\), and jobs wait: knwon \(2 jobs\), known \(1 job\)$/,
    );
  });

  it('tells of payloads that workers rejected, and that jobs aside wait for other workers, not for more', async () => {
    const input = { '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) } };
    const strict = defineJob({ name: 'strict', input: input as never, run: () => {} });
    await using mulligan = await Mulligan.open(`sqlite:${path}`, { jobs: [strict], log: () => {} });
    const worker = mulligan.work();
    await mulligan.enqueue(defineJob<null>({ name: 'strict', run: () => {} }), null);
    await worker.whenIdle();
    expect((await checks()).get('rejected payloads')).toMatchObject({
      health: 'warn',
      found: '1 job that the schema of a worker rejected: strict',
    });
    await mulligan.enqueue('strcit', null);
    await worker.whenIdle();
    change(`UPDATE jobs SET due_at = ${Date.now() - 540_000}`);
    const { health, found, advice } = (await checks()).get('waiting') as Check;
    expect(health).toBe('warn');
    expect(found.split(/: |, /).toSorted()).toEqual(['2 due jobs set aside', 'strcit (1 job)', 'strict (1 job)']);
    expect(advice).toContain('knows their names and versions');
  });

  it('of a newer version that this one cannot use, or of another program, is bad and left alone', async () => {
    await newFile();
    change('PRAGMA user_version = 99');
    expect((await checks()).get('schema')).toMatchObject({
      health: 'ok',
      found: expect.stringContaining('can work with it'),
    });
    change('UPDATE identity SET minimum_reader = 99');
    const newer = await checks();
    expect(newer.get('schema')).toMatchObject({ health: 'bad', found: expect.stringContaining('version 99') });
    expect(newer.has('writing')).toBe(false);
    change('PRAGMA application_id = 7');
    expect((await checks()).get('schema')).toMatchObject({
      health: 'bad',
      found: expect.stringContaining('not a file'),
    });
  });

  it('that is none is bad', async () => {
    writeFileSync(path, 'these are not the pages of a database, however many of them there are'.repeat(100));
    const found = await checks();
    expect(found.get('schema')).toMatchObject({ health: 'bad', found: expect.stringContaining('not a database') });
    // One complaint is enough.
    expect([...found.values()].filter(({ health }) => health === 'bad')).toHaveLength(1);
  });

  it('whose pages were overwritten is bad, and says what to do about it', async () => {
    await newFile();
    const pages = readFileSync(path);
    // The header says what the file is; where its tables are is lost, so nothing can be looked through.
    writeFileSync(path, pages.fill(0x5a, 100));
    const damaged = (await checks()).get('integrity');
    expect(damaged).toMatchObject({ health: 'bad', advice: expect.stringContaining('restore a backup') });
  });

  it('whose lock is held is warned of', async () => {
    await newFile();
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    try {
      expect((await checks()).get('writing')).toMatchObject({
        health: 'warn',
        found: expect.stringMatching(/no turn/),
      });
    } finally {
      other.close();
    }
  });
});
