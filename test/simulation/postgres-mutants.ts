import type { Mistake } from './mistake.ts';
import type { Watcher } from './postgres-hunt.ts';

/** A mistake in the SQL or the TypeScript of the PostgreSQL store. */
export interface PostgresMutant extends Mistake {
  /** What notices it, so that the run begins there. */
  readonly by: Watcher;
  /** Tried with every change too, and not only by `npm run mutants:postgres`: by this test alone, which is quick. */
  readonly test?: string;
}

const store = 'store/postgres';

export const postgresMutants: readonly PostgresMutant[] = [
  // Locks, and looking again after a wait
  {
    name: 'a claim waits for jobs that another claim is taking',
    file: `${store}/sql/claim.ts`,
    find: 'CASE WHEN total_due > p_limit THEN g.want END) FOR UPDATE SKIP LOCKED',
    replace: 'CASE WHEN total_due > p_limit THEN g.want END) FOR UPDATE',
    by: 'concurrency',
  },
  {
    name: 'two claims fill the same room for retries and suspects',
    file: `${store}/sql/take.ts`,
    find: 'PERFORM pg_advisory_xact_lock(hashtext(current_schema()), g.lock) FROM (',
    replace: 'PERFORM 1 FROM (',
    by: 'concurrency',
    test: 'counts the retries that another claim is starting against maxRetriesInFlight',
  },
  {
    name: 'a cancel does not lock its job',
    file: `${store}/sql/operate.ts`,
    find: 'SELECT * INTO ended FROM live WHERE id = p_id FOR UPDATE;',
    replace: 'SELECT * INTO ended FROM live WHERE id = p_id;',
    by: 'concurrency',
    test: 'of a job that a claim takes meanwhile asks the running job to stop',
  },
  {
    name: 'a cancel does not look again for a job that was redriven meanwhile',
    file: `${store}/sql/operate.ts`,
    find: 'IF EXISTS (SELECT 1 FROM live WHERE id = p_id) THEN RETURN cancel(p_id); END IF;',
    replace: '',
    by: 'concurrency',
  },
  {
    name: 'dead jobs that are redriven are not locked',
    file: `${store}/sql/change.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source as it is written.
    find: "PERFORM 1 FROM ${GIVEN} JOIN finished f ON ${lookUp('f.id', 'g.id')} ORDER BY f.id FOR UPDATE OF f;",
    replace: '',
    by: 'concurrency',
    test: 'that two redrives choose at once is redriven once',
  },
  {
    name: 'a redrive takes a key that another transaction took first',
    file: `${store}/sql/change.ts`,
    find: 'IF holder IS DISTINCT FROM job.id THEN',
    replace: 'IF false THEN',
    by: 'concurrency',
  },
  {
    name: 'an enqueue does not look again for a key whose holder ended meanwhile',
    file: `${store}/sql/enqueue.ts`,
    find: '-- It ended meanwhile.\n      CONTINUE WHEN NOT FOUND;',
    replace: '',
    by: 'concurrency',
    test: 'whose holder ends between two looks goes to the new job',
  },
  {
    name: 'an enqueue does not look again for a key that another enqueue took over meanwhile',
    file: `${store}/sql/enqueue.ts`,
    find: 'AND job = holder;\n        CONTINUE WHEN NOT FOUND;',
    replace: 'AND job = holder;',
    by: 'concurrency',
  },
  {
    name: 'a job that was sent again after its end runs again',
    file: `${store}/sql/enqueue.ts`,
    find: 'IF EXISTS (SELECT 1 FROM finished WHERE id = ANY (p_id)) THEN',
    replace: 'IF false THEN',
    by: 'conformance',
  },
  // Partitions and holds
  {
    name: 'a new partition does not wait for a hold that is being written',
    file: `${store}/sql/partitions.ts`,
    find: 'LOCK TABLE holds IN SHARE MODE;',
    replace: '',
    by: 'concurrency',
  },
  {
    name: 'two holds at once do not wait for each other',
    file: `${store}/sql/partitions.ts`,
    find: 'LOCK TABLE holds IN SHARE ROW EXCLUSIVE MODE;',
    replace: '',
    by: 'concurrency',
  },
  {
    name: 'two processes cannot create the same partition at once',
    file: `${store}/sql/partitions.ts`,
    find: '\n      ON CONFLICT DO NOTHING;',
    replace: ';',
    by: 'concurrency',
  },
  {
    name: 'a job is put into a partition without the lock that keeps it from being parked',
    file: `${store}/sql/partitions.ts`,
    find: 'ORDER BY id FOR KEY SHARE',
    replace: 'ORDER BY id',
    by: 'concurrency',
  },
  {
    name: 'a partition is parked without its lock',
    file: `${store}/sql/partitions.ts`,
    find: "WHERE g.is_empty AND p.resource <> '' FOR UPDATE OF p SKIP LOCKED);",
    replace: "WHERE g.is_empty AND p.resource <> '');",
    by: 'concurrency',
  },
  {
    name: 'a parked partition stays parked when a job is put into it',
    file: `${store}/sql/partitions.ts`,
    find: '(p.admissible_at > greatest(p.held_until, store_now) OR',
    replace: '(p.admissible_at < greatest(p.held_until, store_now) OR',
    by: 'concurrency',
  },
  {
    name: 'a redriven job stays in a parked partition',
    file: `${store}/sql/change.ts`,
    find: "EXIT WHEN home IS NOT NULL AND (job.resource = '' OR admit(ARRAY[home]));",
    replace: 'EXIT WHEN home IS NOT NULL;',
    by: 'concurrency',
  },
  {
    name: 'a partition is deleted while a job that is put into it is being committed',
    file: `${store}/sql/partitions.ts`,
    find: 'WHERE p.id = ANY (empty) ORDER BY p.id FOR UPDATE SKIP LOCKED);',
    replace: 'WHERE p.id = ANY (empty) ORDER BY p.id);',
    by: 'concurrency',
  },
  {
    name: 'a partition that was empty before it was locked is deleted',
    file: `${store}/sql/partitions.ts`,
    find: ' AND NOT EXISTS (SELECT 1 FROM live l WHERE l.partition = g.id);',
    replace: ';',
    by: 'concurrency',
  },
  {
    name: 'a job is put into a partition that is gone',
    file: `${store}/sql/partitions.ts`,
    find: 'IF NOT keep(p_partition) THEN RETURN false; END IF;',
    replace: 'PERFORM keep(p_partition);',
    by: 'concurrency',
  },
  {
    name: 'a partition is deleted although a strict transaction put a job into it',
    file: `${store}/sql/partitions.ts`,
    find: 'IF has_strict() THEN RETURN p_after; END IF;',
    replace: '',
    by: 'concurrency',
  },
  // Leases
  {
    name: 'all but one lease is lost when leases are folded',
    file: `${store}/sql/claim.ts`,
    find: 'min(l.lease_ends_at), max(t.lease_ms), array_agg(l.id)',
    replace: 'min(l.lease_ends_at), max(t.lease_ms), (array_agg(l.id))[1:1]',
    by: 'concurrency',
    test: 'is found for each of 160 jobs of many claims, however often others look meanwhile',
  },
  {
    name: 'folded leases are checked only when the last of them has expired',
    file: `${store}/sql/claim.ts`,
    find: 'min(l.lease_ends_at), max(t.lease_ms)',
    replace: 'max(l.lease_ends_at), max(t.lease_ms)',
    by: 'concurrency',
  },
  {
    name: 'a row of leases is deleted while one of its jobs is running',
    file: `${store}/leases.ts`,
    find: '--held.lease.held === 0',
    replace: '--held.lease.held >= 0',
    by: 'concurrency',
  },
  {
    name: 'a lease that a heartbeat shortened is found late',
    file: `${store}/sql/heartbeat.ts`,
    find: 'WHERE b.lease_ends_at < b.before',
    replace: 'WHERE b.lease_ends_at < b.before - 1000000000',
    by: 'concurrency',
  },
  {
    name: 'the fence does not name the worker',
    file: `${store}/sql/shared.ts`,
    find: ' AND l.runs = g.run AND l.worker = g.worker`',
    replace: ' AND l.runs = g.run AND l.worker IS NOT NULL`',
    by: 'conformance',
  },
  {
    name: 'the fence does not name the run',
    file: `${store}/sql/shared.ts`,
    find: ' AND l.runs = g.run AND l.worker = g.worker`',
    replace: ' AND l.worker = g.worker`',
    by: 'conformance',
  },
  {
    name: 'a crash is believed while the lease lasts',
    file: `${store}/sql/settle.ts`,
    find: 'OR l.lease_ends_at <= store_now)`',
    replace: 'OR l.lease_ends_at > 0)`',
    by: 'concurrency',
  },
  {
    name: 'a cancel that comes before a settlement is lost',
    file: `${store}/sql/settle.ts`,
    find: ' AND NOT l.cancel_requested',
    replace: '',
    by: 'conformance',
  },
  // The scan cursor
  {
    name: 'claims never scan back',
    file: `${store}/scan/scan-cursor.ts`,
    find: 'if (this.#db.clock.monotonic() >= this.#scanAt)',
    replace: 'if (this.#db.clock.monotonic() < 0)',
    by: 'concurrency',
  },
  {
    name: 'what a back-scan has found is not read',
    file: `${store}/scan/scan-cursor.ts`,
    find: 'this.#addMissed(cursor, first, isBefore(end, position) ? end : position);',
    replace: '',
    by: 'concurrency',
  },
  {
    name: 'a claim that began before a job was missed says that there is none',
    file: `${store}/scan/scan-cursor.ts`,
    find: 'cursor.missed?.version === range.missed',
    replace: 'cursor.missed !== null',
    by: 'unit',
  },
  {
    name: 'the cursor passes jobs that are being committed',
    file: `${store}/scan/scan-cursor.ts`,
    find: 'reached.dueAt > horizon ? { dueAt: horizon, seq: 0 } : place(reached)',
    replace: 'place(reached)',
    by: 'unit',
  },
  {
    name: 'transactions that are open are not waited for',
    file: `${store}/scan/in-flight.ts`,
    find: 'if (since > now - LONGEST_MS) horizon',
    replace: 'if (since > now) horizon',
    by: 'unit',
  },
  {
    name: 'a job that is handed back to a place that claims have passed is found late',
    file: `${store}/settle.ts`,
    find: 'for (const [partition, dueAt, seq] of places) session.cursors.rewind(partition, dueAt, seq);',
    replace: 'void places;',
    by: 'conformance',
  },
  // Error groups
  {
    name: 'a job that fails with another error stays in its old group too',
    file: `${store}/error-counts.ts`,
    find: '-1 AS failing',
    replace: '0 AS failing',
    by: 'conformance',
  },
  {
    name: 'adding up the counters of error groups loses some',
    file: `${store}/sql/error-groups.ts`,
    find: 'FROM gone c GROUP BY 1, 2, 3;',
    replace: 'FROM gone c WHERE c.dead <> 0 GROUP BY 1, 2, 3;',
    by: 'conformance',
  },
  {
    name: 'deleted jobs stay in their error group',
    file: `${store}/sql/operate.ts`,
    find: 'SELECT fingerprint, job_type, -count(*) FROM gone WHERE state',
    replace: 'SELECT fingerprint, job_type, 0 FROM gone WHERE state',
    by: 'conformance',
  },
];
