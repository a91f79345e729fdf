import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { MulliganError, StoreBusyError, StoreIncompatibleError, StoreUnavailableError } from '../../errors.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { claim, enqueueOne, jobOf, newJob, retryIn, settlement } from '../conformance/builders.ts';
import type { ClaimedJob } from '../store.ts';
import { refuseUnsafeSqlite } from './open.ts';
import { APPLICATION_ID, migrations } from './schema.ts';
import { SqliteStore } from './store.ts';

class Folder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly file: string = join(this.path, 'jobs.db');

  /** Everything in it, byte for byte. */
  contents(): Record<string, string> {
    const names = readdirSync(this.path, { recursive: true }) as string[];
    return Object.fromEntries(
      names.map((name) => {
        const path = join(this.path, name);
        return [
          name,
          statSync(path).isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'folder',
        ];
      }),
    );
  }

  [Symbol.dispose](): void {
    chmodSync(this.path, 0o700);
    rmSync(this.path, { recursive: true });
  }
}

function database(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

/** The refusal, by a thread of its own and in this one. Fails when the file can be opened. */
async function refusals(path: string): Promise<MulliganError[]> {
  const errors: MulliganError[] = [];
  for (const inline of [undefined, new VirtualClock()]) {
    try {
      const store = await SqliteStore.open(inline ? { path, inline } : { path });
      await store.close();
      throw new Error('it was opened');
    } catch (error) {
      expect(error).toBeInstanceOf(MulliganError);
      errors.push(error as MulliganError);
    }
  }
  return errors;
}

const theirs = "CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ada');";
const owned = `PRAGMA application_id = ${APPLICATION_ID};`;

describe('a file that is not ours is refused, and left as it is, byte for byte:', () => {
  it.each<[string, (path: string) => void, string]>([
    ['a text', (path) => writeFileSync(path, 'Dear diary, '.repeat(200)), 'found a file SQLite cannot read'],
    ['a text shorter than a database', (path) => writeFileSync(path, 'hi'), 'found a file SQLite cannot read'],
    [
      'a torn database',
      (path) => writeFileSync(path, `SQLite format 3\0${'\u0007'.repeat(4_080)}`),
      'found a file SQLite cannot read',
    ],
    ['another program’s database', (path) => database(path, theirs), "found another program's database"],
    [
      'one with a write-ahead log',
      (path) => database(path, `PRAGMA journal_mode = WAL; ${theirs}`),
      "found another program's database",
    ],
    [
      'one that is empty but marked',
      (path) => database(path, 'PRAGMA application_id = 77;'),
      "found another program's database",
    ],
    [
      'one that is empty but has a version',
      (path) => database(path, `PRAGMA user_version = ${migrations.length};`),
      "found another program's database",
    ],
    [
      'one from a newer Mulligan',
      (path) => database(path, `${theirs} ${owned} PRAGMA user_version = 999;`),
      `expected a file for schema version ${migrations.length}, found version 999`,
    ],
    [
      'one from a newer Mulligan, with a write-ahead log',
      (path) => database(path, `PRAGMA journal_mode = WAL; ${theirs} ${owned} PRAGMA user_version = 999;`),
      'it was made by a newer one',
    ],
  ])('%s', async (_, make, message) => {
    using folder = new Folder();
    make(folder.file);
    const before = folder.contents();
    for (const error of await refusals(folder.file)) {
      expect(error).toBeInstanceOf(StoreIncompatibleError);
      expect(error.message).toContain(`${folder.file}: `);
      expect(error.message).toContain(message);
      expect(error.message).toContain('left as it is');
    }
    expect(folder.contents()).toEqual(before);
  });

  it('another program’s database while that program has it open', async () => {
    using folder = new Folder();
    const other = new DatabaseSync(folder.file);
    other.exec(`PRAGMA journal_mode = WAL; ${theirs}`);
    const before = folder.contents();
    for (const error of await refusals(folder.file)) expect(error).toBeInstanceOf(StoreIncompatibleError);
    const { 'jobs.db-shm': __, ...after } = folder.contents();
    const { 'jobs.db-shm': ___, ...expected } = before;
    // The index of the log is where readers say that they read.
    expect(after).toEqual(expected);
    expect(other.prepare('SELECT name FROM customers').all()).toEqual([{ name: 'Ada' }]);
    other.close();
  });
});

describe('a place where no queue can be is refused with a word on what to do:', () => {
  it('a folder that does not exist', async () => {
    using folder = new Folder();
    const path = join(folder.path, 'missing', 'jobs.db');
    for (const error of await refusals(path)) {
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error.message).toContain(
        `${path}: expected a folder that exists and can be written, but ${join(folder.path, 'missing')} cannot (ENOENT`,
      );
    }
    expect(folder.contents()).toEqual({});
  });

  it('a file where a folder should be', async () => {
    using folder = new Folder();
    writeFileSync(join(folder.path, 'file'), 'text');
    for (const error of await refusals(join(folder.path, 'file', 'jobs.db'))) {
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error.message).toContain('expected a folder that exists and can be written');
    }
  });

  it('a folder where the file should be', async () => {
    using folder = new Folder();
    mkdirSync(folder.file);
    for (const error of await refusals(folder.file)) {
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error.message).toBe(`${folder.file}: expected a file, found a folder; give the path of a file`);
    }
    expect(folder.contents()).toEqual({ [basename(folder.file)]: 'folder' });
  });

  const asRoot = process.getuid?.() === 0;
  it.skipIf(asRoot)(
    `a folder that is read-only${asRoot ? ' (skipped: permissions do not bind root)' : ''}`,
    async () => {
      using folder = new Folder();
      chmodSync(folder.path, 0o500);
      for (const error of await refusals(folder.file)) {
        expect(error).toBeInstanceOf(StoreUnavailableError);
        expect(error.message).toContain(`but ${folder.path} cannot (EACCES`);
      }
    },
  );

  it.skipIf(asRoot)(`a file that is read-only${asRoot ? ' (skipped: permissions do not bind root)' : ''}`, async () => {
    using folder = new Folder();
    await (await SqliteStore.open({ path: folder.file })).close();
    chmodSync(folder.file, 0o400);
    const before = folder.contents();
    for (const error of await refusals(folder.file)) {
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(error.message).toContain('expected a file that can be written');
    }
    expect(folder.contents()).toEqual(before);
  });
});

describe('a version of SQLite', () => {
  it.each(['3.51.3', '3.51.4', '3.52.0', '3.53.0', '3.100.0', '4.0.0', '3.50.7', '3.50.9', '3.44.6', '3.44.7'])(
    'that cannot corrupt a shared file is taken: %s',
    (version) => {
      expect(() => refuseUnsafeSqlite(version)).not.toThrow();
    },
  );

  it.each([
    '3.51.2',
    '3.51.0',
    '3.50.6',
    '3.50.0',
    '3.49.9',
    '3.45.0',
    '3.44.5',
    '3.43.9',
    '3.7.0',
    '2.8.17',
    '',
    'unknown',
    undefined,
  ])('that can is refused: %s', (version) => {
    const refuse = (): void => refuseUnsafeSqlite(version);
    expect(refuse).toThrow(StoreIncompatibleError);
    expect(refuse).toThrow(`this is Node.js ${process.versions.node} with SQLite ${version || 'none'}, which`);
    expect(refuse).toThrow('as Node.js 22.22.3 and 24.15 bring it');
    expect(refuse).not.toThrow(/\n/);
    expect(refuse).toThrow('Use a newer Node.js');
  });

  it('is asked for before any file is touched: this one is fine', () => {
    expect(() => refuseUnsafeSqlite(process.versions.sqlite)).not.toThrow();
  });
});

describe('a new file', () => {
  it('is made, also in place of an empty one, and is known as ours from then on', async () => {
    for (const empty of [false, true]) {
      using folder = new Folder();
      if (empty) writeFileSync(folder.file, '');
      const store = await SqliteStore.open({ path: folder.file });
      await store.close();
      expect(Object.keys(folder.contents())).toEqual(['jobs.db']);
      const db = new DatabaseSync(folder.file, { readOnly: true });
      expect(db.prepare('PRAGMA application_id').get()).toEqual({ application_id: APPLICATION_ID });
      expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: migrations.length });
      expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
      db.close();
    }
  });

  it('can be read by its owner alone, with the files beside it; one that was there keeps its mode', async () => {
    for (const [before, after] of [
      [null, 0o600],
      [0o640, 0o640],
    ] as const) {
      using folder = new Folder();
      if (before !== null) writeFileSync(folder.file, '');
      if (before !== null) chmodSync(folder.file, before);
      const store = await SqliteStore.open({ path: folder.file });
      const modes = readdirSync(folder.path).map((name) => [name, statSync(join(folder.path, name)).mode & 0o777]);
      await store.close();
      expect(modes).toEqual(['jobs.db', 'jobs.db-shm', 'jobs.db-wal'].map((name) => [name, after]));
    }
  });

  it('keeps its jobs when it is opened again', async () => {
    using folder = new Folder();
    const first = await SqliteStore.open({ path: folder.file });
    const id = await enqueueOne(first, { payload: '{"n":1}', key: 'k' });
    await first.close();
    const again = await SqliteStore.open({ path: folder.file });
    expect(await jobOf(again, id)).toMatchObject({ state: 'ready', payload: { n: 1 }, key: 'k' });
    expect(await again.enqueue([newJob({ key: 'k' })])).toEqual([{ id, existed: true }]);
    await again.close();
  });

  it('is made once by twenty processes that open it at the same moment', async () => {
    using folder = new Folder();
    const script = new URL('../../../test/support/open-file.ts', import.meta.url);
    const children = Array.from({ length: 20 }, () =>
      fork(script, [`sqlite:${folder.file}`], { execArgv: ['--disable-warning=ExperimentalWarning'] }),
    );
    const exits = children.map((child) => once(child, 'exit'));
    try {
      const answer = async (child: ChildProcess): Promise<unknown> => (await once(child, 'message'))[0];
      await Promise.all(children.map(answer));
      const answers = Promise.all(children.map(answer));
      for (const child of children) child.send('go');
      expect(await answers).toEqual(children.map(() => ({ id: expect.any(String) })));
    } finally {
      for (const child of children) child.kill();
      await Promise.all(exits);
    }
    const store = await SqliteStore.open({ path: folder.file });
    expect(await store.list({ limit: 100 })).toHaveLength(20);
    await store.close();
    expect(Object.keys(folder.contents())).toEqual(['jobs.db']);
  });
});

describe('a file of a newer Mulligan', () => {
  /** What a newer version may add: a nullable column, a table, an index. */
  async function upgraded(path: string, minimumReader: number): Promise<string> {
    const first = await SqliteStore.open({ path });
    const id = await enqueueOne(first);
    await first.close();
    database(
      path,
      `ALTER TABLE jobs ADD COLUMN of_later TEXT; CREATE TABLE of_later (id TEXT); CREATE INDEX later ON jobs (of_later);
       UPDATE identity SET minimum_reader = ${minimumReader}; PRAGMA user_version = ${migrations.length + 1};`,
    );
    return id;
  }

  it('is used when it says that this version can work with it, and keeps its version', async () => {
    using folder = new Folder();
    const id = await upgraded(folder.file, migrations.length);
    const store = await SqliteStore.open({ path: folder.file });
    const [job] = (await claim(store)).jobs;
    expect(job?.id).toBe(id);
    expect(await store.settle([settlement(job as ClaimedJob, retryIn(0))])).toEqual(['settled']);
    expect((await claim(store)).jobs).toMatchObject([{ id, run: 2 }]);
    await enqueueOne(store);
    await store.close();
    using db = new DatabaseSync(folder.file, { readOnly: true });
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: migrations.length + 1 });
  });

  it('is refused when it says that this version cannot, and left as it is', async () => {
    using folder = new Folder();
    await upgraded(folder.file, migrations.length + 1);
    const before = folder.contents();
    for (const error of await refusals(folder.file)) {
      expect(error).toBeInstanceOf(StoreIncompatibleError);
      expect(error.message).toContain(`found version ${migrations.length + 1}, which an older Mulligan cannot use`);
      expect(error.message).toContain('Upgrade this process.');
    }
    expect(folder.contents()).toEqual(before);
  });
});

describe('a file that another process is just making', () => {
  /** Holds the file as a process does that creates it. */
  function maker(path: string): DatabaseSync {
    const db = new DatabaseSync(path);
    db.exec('BEGIN EXCLUSIVE');
    return db;
  }

  it('is waited for', async () => {
    using folder = new Folder();
    const other = maker(folder.file);
    const clock = new VirtualClock();
    const opening = SqliteStore.open({ path: folder.file, inline: clock });
    await clock.advance(5_000);
    expect(clock.pending).toBe(1);
    other.exec('COMMIT');
    other.close();
    await clock.advance(1_000);
    const store = await opening;
    await enqueueOne(store);
    await store.close();
  });

  it('is not waited for without end', async () => {
    using folder = new Folder();
    const other = maker(folder.file);
    const clock = new VirtualClock();
    const opening = SqliteStore.open({ path: folder.file, inline: clock }).then(
      () => 'it was opened',
      (error: unknown) => error,
    );
    await clock.advance(60_000);
    expect(await opening).toBeInstanceOf(StoreBusyError);
    expect(clock.pending).toBe(0);
    other.close();
  });
});

describe('closing', () => {
  it('waits for calls that another process’s lock holds up, and answers them', async () => {
    using folder = new Folder();
    const store = await SqliteStore.open({ path: folder.file });
    const other = new DatabaseSync(folder.file);
    other.exec('BEGIN IMMEDIATE');
    const enqueued = enqueueOne(store);
    const read = store.list({ limit: 10 });
    let closed = false;
    const closing = store.close().then(() => {
      closed = true;
    });
    await read;
    expect(closed).toBe(false);
    other.exec('COMMIT');
    const id = await enqueued;
    await closing;
    expect(other.prepare('SELECT id FROM jobs').all()).toEqual([{ id }]);
    other.close();
  });

  it('beside an enqueue ends the process as soon as both are answered', async () => {
    using folder = new Folder();
    const script = new URL('../../../test/support/close-beside-enqueue.ts', import.meta.url);
    const child = fork(script, [folder.file], { execArgv: ['--disable-warning=ExperimentalWarning'], stdio: 'pipe' });
    const answered = once(child, 'message');
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
    expect((await answered)[0]).toEqual({ id: expect.any(String), closed: true });
  });

  it('leaves neither the log nor its index behind', async () => {
    using folder = new Folder();
    const store = await SqliteStore.open({ path: folder.file });
    await enqueueOne(store);
    await store.stats();
    await store.close();
    expect(Object.keys(folder.contents())).toEqual(['jobs.db']);
  });
});
