import pg from 'pg';
import { expect } from 'vitest';
import { STATE } from '../../src/store/codes.ts';
import { newSchema, runSql } from './postgres-schema.ts';

const IN_USE = '55006';

/** A database of its own on a shared server: a test may do anything to its connections. */
export class TestDatabase implements AsyncDisposable {
  readonly name: string;
  /** Of the database; the queue is in its default schema. */
  readonly url: string;
  readonly #server: string;

  static async create(server: string): Promise<TestDatabase> {
    const database = new TestDatabase(server);
    await runSql(server, `CREATE DATABASE ${database.name}`);
    return database;
  }

  private constructor(server: string) {
    this.#server = server;
    this.name = newSchema();
    const url = new URL(server);
    url.pathname = `/${this.name}`;
    this.url = `${url}`;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  sql(text: string, values: unknown[] = []): Promise<unknown[]> {
    return runSql(this.url, text, values);
  }

  /** A connection that stays, until its owner ends it. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    return client;
  }

  /** Ends the connections of this database that `which`, a condition on pg_stat_activity, selects. Answers how many. */
  async terminate(which = 'true'): Promise<number> {
    const rows = await runSql(
      this.#server,
      `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))::int AS ended
       FROM pg_stat_activity WHERE datname = $1 AND ${which}`,
      [this.name],
    );
    return (rows[0] as { ended: number }).ended;
  }

  /**
   * PostgreSQL waits five seconds for connections that are about to end, as those of a pool are for a moment after `pool.end()`.
   * Only those that stay are ended by force: their clients report it as an error.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await runSql(this.#server, `DROP DATABASE ${this.name}`).catch((error: { code?: string }) => {
      if (error.code !== IN_USE) throw error;
      return runSql(this.#server, `DROP DATABASE ${this.name} WITH (FORCE)`);
    });
  }
}

/** The tables agree with one another: every job lies in one place, and nothing belongs to no job. */
export async function expectSoundTables(url: string, schema = 'mulligan'): Promise<void> {
  const [found] = await runSql(
    url,
    `WITH jobs AS (SELECT id FROM ${schema}.live UNION ALL SELECT id FROM ${schema}.finished)
    SELECT
      (SELECT count(*)::int FROM (SELECT id FROM jobs GROUP BY id HAVING count(*) > 1) j) AS misplaced,
      (SELECT count(*)::int FROM ${schema}.runs r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job)) AS orphans,
      (SELECT count(*)::int FROM ${schema}.keys k
        WHERE k.held_until IS NULL AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = k.job)) AS keys,
      (SELECT count(*)::int FROM ${schema}.errors e WHERE e.uses <>
        (SELECT count(*) FROM ${schema}.runs r WHERE r.error = e.id)
        + (SELECT count(*) FROM ${schema}.finished f WHERE f.failed AND f.last_error = e.id)) AS miscounted,
      (SELECT count(*)::int FROM (
        SELECT last_error FROM ${schema}.live UNION ALL SELECT last_error FROM ${schema}.finished
        UNION ALL SELECT error FROM ${schema}.runs) p
        WHERE last_error IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${schema}.errors e WHERE e.id = last_error)) AS dangling,
      (SELECT count(*)::int FROM ${schema}.live l WHERE l.worker IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM ${schema}.leases h WHERE l.id = ANY (h.jobs) AND h.check_at <= l.lease_ends_at)) AS unwatched,
      (SELECT count(*)::int FROM ${schema}.live l WHERE NOT EXISTS (
        SELECT 1 FROM ${schema}.partitions p WHERE p.id = l.partition)) AS nowhere,
      (SELECT count(*)::int FROM (
        SELECT fingerprint, t.counted_as, sum(failing) AS failing, sum(dead) AS dead FROM (
          SELECT fingerprint, job_type, failing, dead FROM ${schema}.error_counts
          UNION ALL SELECT fingerprint, job_type, -1, 0 FROM ${schema}.live
          UNION ALL SELECT fingerprint, job_type, 0, -(state = ${STATE.dead})::int FROM ${schema}.finished) g
        JOIN ${schema}.job_types t ON t.id = g.job_type
        WHERE fingerprint IS NOT NULL GROUP BY 1, 2) g WHERE failing <> 0 OR dead <> 0) AS misgrouped,
      (SELECT count(*)::int FROM ${schema}.live l, json_array_elements(l.limits::json) AS b (one)
        WHERE l.worker IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM ${schema}.limit_slots s, unnest(s.jobs, s.runs) AS j (job, run) WHERE j.job = l.id AND j.run = l.runs
            AND s.limit_name = b.one ->> 0 AND s.key = b.one ->> 1)) AS uncounted,
      (SELECT count(*)::int FROM ${schema}.limit_slots s WHERE NOT EXISTS (
        SELECT 1 FROM ${schema}.live l, unnest(s.jobs, s.runs) AS j (job, run) WHERE l.id = j.job AND l.runs = j.run)) AS unfreed,
      (SELECT count(*)::int FROM ${schema}.partitions p, split_part(p.queue, E'\\x01', 5) AS names (text)
        WHERE names.text <> '' AND json_array_length(names.text::json) <> (
          SELECT count(*) FROM ${schema}.limit_partitions b WHERE b.partition = p.id)) AS unfound`,
  );
  expect(found).toEqual({
    misplaced: 0,
    orphans: 0,
    keys: 0,
    miscounted: 0,
    dangling: 0,
    unwatched: 0,
    nowhere: 0,
    misgrouped: 0,
    uncounted: 0,
    unfreed: 0,
    unfound: 0,
  });
}
