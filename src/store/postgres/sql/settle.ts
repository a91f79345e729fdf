import { STATE } from '../../codes.ts';
import { addCounts, asStored, type EndedRun } from '../counts.ts';
import { addErrorCounts } from '../error-counts.ts';
import { ENQUEUE_PARAMETERS } from './enqueue.ts';
import {
  BY_INDEX,
  CHECK_IDENTITY,
  FENCE,
  HERE,
  IS_SAME,
  LARGEST_CALL,
  lookUp,
  OUTCOME,
  OUTLIVING_KEYS,
  queueOf,
  SAY_REPLACED,
} from './shared.ts';

/** Many errors are alike, so texts are sent once and stored once, and pointed at by position. */
const GIVEN = `
  SELECT g.id, g.run, g.worker, g.outcome, g.state, g.counted, g.delay, g.partition, g.backoff, g.reason,
    g.refund, g.spent_at, g.spent_count, g.result, g.progress, first_error + g.error AS error,
    CASE WHEN g.outcome <> ${OUTCOME.cancelled} THEN p_fingerprints[g.error] END AS failure, p_decisions[g.decision] AS decision, g.started, g.ended, g.ord
  FROM unnest(p_id, p_run, p_worker, p_outcome, p_state, p_counted, p_delay, p_partition, p_backoff, p_reason, p_error,
    p_decision, p_started, p_ended, p_refund, p_spent_at, p_spent_count, p_result, p_progress) WITH ORDINALITY AS g (id, run, worker, outcome, state,
    counted, delay, partition, backoff, reason, error, decision, started, ended, refund, spent_at, spent_count, result, progress,
    ord)`;
/** A crash is only believed while the lease is over: a worker that came back in time keeps its run. */
const BELIEVED = `(g.outcome <> ${OUTCOME.crashed} OR l.lease_ends_at <= store_now)`;

/** `Settled.ran`: what was handed back is as if it had never been claimed. */
const RAN = `g.outcome <> ${OUTCOME.released}`;

/** The note of the job: `refund` is null when the settlement leaves it as it is. */
const noteOf = (column: string): string => `CASE WHEN g.refund IS NULL THEN l.${column} ELSE g.${column} END`;

/** When the job is due again: sooner than the settlement says where it was to run now while it ran. */
const NEXT_DUE = `CASE WHEN l.run_now_at >= l.claimed_at
            THEN least(store_now + g.delay, greatest(store_now, l.run_now_at)) ELSE store_now + g.delay END`;

/** Stores what these ended runs threw. */
const storeErrors = (runs: string): string => `
  INSERT INTO errors (id, uses, error)
  SELECT r.error, count(*), p_errors[r.error - first_error] FROM ${runs} r WHERE r.error IS NOT NULL GROUP BY r.error
  ON CONFLICT (id) DO UPDATE SET uses = errors.uses + excluded.uses`;

/** Which runs end, and what becomes of their jobs. */
interface Ends {
  readonly given: string;
  readonly condition: string;
  /** What the rows that are given have to bring along. */
  readonly carried: string;
  readonly run: EndedRun;
  /** Attempts of earlier runs that are given back. */
  readonly refunded: string;
  /** The note that the job keeps, of spent_at and spent_count. */
  readonly note: string;
  /** The error group that the run adds the job to. */
  readonly failure: string;
  /** Further parts of the statement. */
  readonly also: string;
  readonly answer: string;
}

/** Ends runs: the row leaves `live` for `finished`, and takes its last run along. */
const end = ({ given, condition, carried, run, refunded, note, failure, also, answer }: Ends): string => `
    WITH gone AS (
      -- OFFSET 0 keeps what is given in one piece: each row of it is looked up, in its order.
      DELETE FROM live l USING (${given} OFFSET 0) g
      WHERE ${FENCE} AND ${condition}
      RETURNING ${carried} g.started, g.ended, g.result, g.progress AS last_progress, l.attempts AS attempt, l.id, l.seq, l.enqueued_at, l.due_at, l.available_at,
        l.partition, l.job_type, l.payload_bytes, l.runs, l.crashes, l.first_started_at, l.previous_delay_ms, l.key_life, l.key, l.last_error,
        l.fingerprint, l.tags, l.limits, l.trace, l.progress, l.payload
    ), kept AS (
      INSERT INTO finished (id, seq, finished_at, enqueued_at, due_at, available_at, lane, priority, queue, resource, job_type,
        payload_bytes, runs, attempts, crashes, state, dead_reason, first_started_at, previous_delay_ms, outcome, attempt, counted, failed, worker, started_at,
        ended_at, decision, key_life, key, last_error, fingerprint, tags, limits, trace, progress, spent_at, spent_count, result, payload)
      SELECT gone.id, seq, store_now, enqueued_at, due_at, available_at, p.lane, p.priority, ${queueOf('p.queue')}, p.resource, job_type,
        payload_bytes, runs,
        greatest(0, CASE WHEN ${run.counted} THEN attempt ELSE attempt - 1 END - ${refunded}),
        CASE ${run.outcome} WHEN ${OUTCOME.crashed} THEN crashes + 1 ELSE crashes END,
        ${run.state}, ${run.deadReason}, first_started_at, previous_delay_ms, ${run.outcome}, attempt - ${refunded}, ${run.counted},
        ${run.error} IS NOT NULL, ${run.worker}, started, ended, ${run.decision}, key_life, key,
        coalesce(${run.error}, last_error), coalesce(${failure}, fingerprint), tags, limits, trace, coalesce(last_progress, progress), ${note}, result, payload
      FROM gone JOIN partitions p ON ${lookUp('p.id', 'gone.partition')}
    ), freed AS (
      DELETE FROM keys USING gone WHERE gone.key IS NOT NULL AND gone.key_life NOT IN (${OUTLIVING_KEYS}) AND ${lookUp('keys.job', 'gone.id')}
    ), ${also} added AS (
      ${addCounts('gone', run)}
    ), grouped AS (
      ${addErrorCounts({
        from: 'gone',
        before: 'fingerprint',
        failure,
        state: run.state,
        lane: '(SELECT p.lane FROM partitions p WHERE p.id = gone.partition)',
        attempt: `attempt - ${refunded}`,
      })}
    )
    SELECT ${answer} FROM gone;`;

/** What settlements say of each run, and what that makes of the job. */
const endEach = (given: string, condition: string, state = 'g.state', reason = 'g.reason'): string =>
  end({
    given,
    condition,
    carried: `g.ord, g.failure, g.outcome, g.counted, g.worker, g.decision, g.error, ${state} AS state, ${reason} AS dead_reason,
        coalesce(g.refund, 0) AS refunded, ${noteOf('spent_at')} AS spent_at, ${noteOf('spent_count')} AS spent_count,`,
    run: asStored,
    refunded: 'refunded',
    note: 'spent_at, spent_count',
    failure: 'failure',
    also: `stored AS (${storeErrors('gone')}),`,
    answer: 'array_agg(gone.ord) INTO just_applied',
  });

/** Runs that all completed, under one worker: what a settlement nearly always is. So it names what all have in common. */
const END_COMPLETED = end({
  given: `
    SELECT g.id, g.run, p_worker AS worker, g.started, g.ended, g.result, g.progress
    FROM unnest(p_id, p_run, p_started, p_ended, p_result, p_progress) AS g (id, run, started, ended, result, progress)`,
  condition: 'true',
  carried: '',
  run: {
    worker: 'p_worker',
    outcome: `${OUTCOME.completed}::smallint`,
    state: `${STATE.completed}::smallint`,
    counted: 'true',
    deadReason: 'NULL::smallint',
    error: 'NULL::bigint',
    decision: 'p_decision',
  },
  refunded: '0',
  note: 'NULL, NULL',
  failure: 'NULL::text',
  also: 'over AS (DELETE FROM leases WHERE id = ANY (p_over)),',
  answer: `count(*), ${IS_SAME} INTO applied, is_same`,
});

/** Whether a settlement is on the ledger: now, or since it was sent before. */
const isRecorded = (id: string, run: string, worker: string, outcome: string): string => `(
  EXISTS (SELECT 1 FROM finished f WHERE f.id = ${id} AND f.runs = ${run} AND f.worker = ${worker} AND f.outcome = ${outcome})
  OR EXISTS (SELECT 1 FROM runs r WHERE r.job = ${id} AND r.run = ${run} AND r.worker = ${worker} AND r.outcome = ${outcome}))`;

/** Logs of those settlements whose positions p_logged names. */
const keepLogs = (condition: string): string => `
  INSERT INTO run_logs (job, run, log)
  SELECT p_id[g.at], p_run[g.at], g.log FROM unnest(p_logged, p_logs) AS g (at, log) WHERE ${condition}
  ON CONFLICT DO NOTHING;`;

const SETTLE_PARAMETERS = `
    p_identity uuid, p_id uuid[], p_run int[], p_worker int[], p_outcome smallint[], p_state smallint[], p_counted boolean[],
    p_delay bigint[], p_partition bigint[], p_backoff bigint[], p_reason smallint[], p_error int[], p_decision int[],
    p_started bigint[], p_ended bigint[], p_errors text[], p_decisions text[],
    p_over bigint[], p_keyed bigint[], p_refund int[], p_spent_at bigint[], p_spent_count int[], p_fingerprints text[],
    p_result text[], p_progress text[], p_limited uuid[], p_limit text[], p_key text[], p_logged int[], p_logs text[]`;
/** Beside those of `enqueue`, some of which have the same names. */
const BURY_PARAMETERS = SETTLE_PARAMETERS.replaceAll('p_', 's_');
const namesOf = (parameters: string): string =>
  parameters
    .split(',')
    .map((parameter) => parameter.trim().split(' ')[0])
    .join(', ');

export const settleSql: string = `
  -- Answers whether all of them were applied, and whether that lets jobs behind limits start. p_over are leases of which nothing is held any more. p_result and p_progress are
  -- null when no run has a result, or progress that is not stored. p_limited are those of the jobs that have limits,
  -- once for each, with its name and key. p_logs are logs of the runs at the positions p_logged; both are null when there are
  -- none. Unless all runs were applied, \`settle\` is asked next, and stores them.
  CREATE FUNCTION complete(p_identity uuid, p_id uuid[], p_run int[], p_worker int, p_decision text, p_started bigint[], p_ended bigint[],
    p_over bigint[], p_result text[], p_progress text[], p_limited uuid[], p_limit text[], p_key text[], p_logged int[], p_logs text[], OUT are_all boolean, OUT woken boolean)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    applied bigint;
    is_same boolean;
  BEGIN
    ${END_COMPLETED}
    IF NOT is_same THEN ${SAY_REPLACED} END IF;
    PERFORM tell_ended(p_id);
    are_all := applied = cardinality(p_id);
    IF are_all AND p_logged IS NOT NULL THEN ${keepLogs('true')} END IF;
    woken := p_limited <> '{}' AND free_slots(p_limited, p_limit, p_key, '{}');
  END $$;

  -- Answers only what was not simply applied: 1 for a job that a cancel ended instead, 2 for a stale settlement. p_keyed are
  -- those of the partitions that have a resource. When one of these is gone, nothing is settled, and the answer is at 0.
  -- p_limited, p_logged and p_logs: see \`complete\`; an answer at -1 says that jobs may start now that could not before.
  -- p_refund are attempts that are given back; null leaves the job's note (spent_at, spent_count) as it is.
  CREATE FUNCTION settle(${SETTLE_PARAMETERS}
  ) RETURNS TABLE (at bigint, answer int) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    -- One number per call, and room for its errors after it.
    first_error bigint := nextval('settlements') * ${LARGEST_CALL};
    applied bigint[] := '{}';
    just_applied bigint[];
    cancelled bigint[] := '{}';
    is_sooner boolean := false;
    late record;
  BEGIN
    ${CHECK_IDENTITY}
    IF p_fingerprints <> '{}' THEN PERFORM keep_samples(p_fingerprints, p_errors, p_error, p_id); END IF;
    DELETE FROM leases WHERE id = ANY (p_over);
    IF p_keyed <> '{}' AND NOT admit(p_keyed) THEN
      at := 0;
      answer := 0;
      RETURN NEXT;
      RETURN;
    END IF;
    IF array_position(p_delay, NULL) IS NOT NULL THEN
      IF cardinality(array_remove(p_delay, NULL)) > 0 THEN
        -- What ends and what waits is written one after the other; all is locked in the order of ids, as in every other statement.
        PERFORM 1 FROM unnest(p_id) AS g (id) JOIN live l ON ${lookUp('l.id', 'g.id')} FOR UPDATE OF l;
      END IF;
      ${endEach(`${GIVEN} WHERE g.delay IS NULL`, BELIEVED)}
      applied := applied || coalesce(just_applied, '{}');
    END IF;

    IF cardinality(applied) < cardinality(p_id) THEN
      WITH put AS (
        UPDATE live l SET
          state = g.state,
          attempts = greatest(0, l.attempts - (NOT g.counted)::int - coalesce(g.refund, 0)),
          spent_at = ${noteOf('spent_at')}, spent_count = ${noteOf('spent_count')},
          crashes = CASE g.outcome WHEN ${OUTCOME.crashed} THEN l.crashes + 1 ELSE l.crashes END,
          given_back = l.given_back + (g.outcome IN (${OUTCOME.released}, ${OUTCOME.deferred}))::int,
          deferred_since = CASE g.outcome WHEN ${OUTCOME.deferred} THEN coalesce(l.deferred_since, store_now) WHEN ${OUTCOME.snoozed} THEN NULL ELSE l.deferred_since END,
          snoozes = CASE g.outcome WHEN ${OUTCOME.released} THEN l.snoozes WHEN ${OUTCOME.snoozed} THEN l.snoozes + 1 ELSE 0 END,
          -- A job handed back for now keeps its place.
          due_at = CASE g.state WHEN ${STATE.ready} THEN l.due_at ELSE ${NEXT_DUE} END,
          partition = g.partition,
          previous_delay_ms = coalesce(g.backoff, l.previous_delay_ms),
          available_at = CASE WHEN ${RAN} THEN ${NEXT_DUE} ELSE l.available_at END,
          first_started_at = CASE WHEN ${RAN} OR l.first_started_at <> l.claimed_at THEN l.first_started_at END,
          last_error = coalesce(g.error, l.last_error), fingerprint = coalesce(g.failure, l.fingerprint),
          progress = coalesce(g.progress, l.progress),
          worker = NULL, lease_ends_at = NULL, run_now_at = NULL
        FROM (
          -- Read before it is written: the group that the job leaves. Nothing but its settlement changes that while it runs.
          SELECT g.*, b.fingerprint AS before, (SELECT p.lane FROM partitions p WHERE p.id = b.partition) AS lane_before
          FROM (${GIVEN} WHERE g.delay IS NOT NULL OFFSET 0) g
          LEFT JOIN LATERAL (
            SELECT l.fingerprint, l.partition FROM live l WHERE l.id = g.id OFFSET 0
          ) b ON g.failure IS NOT NULL
          ORDER BY g.ord OFFSET 0
        ) g
        WHERE ${FENCE} AND ${BELIEVED} AND NOT l.cancel_requested
        RETURNING g.ord, l.id, g.run, g.outcome, g.counted, g.worker, g.started, g.ended, g.delay,
          CASE g.state WHEN ${STATE.ready} THEN store_now + g.delay ELSE l.due_at END AS next,
          g.decision, g.error, coalesce(g.refund, 0) AS refunded,
          l.attempts + (NOT g.counted)::int + coalesce(g.refund, 0) AS attempt,
          l.job_type, NULL::smallint AS dead_reason, l.state, g.failure, g.before, g.lane_before
      ), kept AS (
        INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error, settled_at)
        SELECT id, run, attempt - refunded, outcome, counted, worker, started, ended, next, decision, error, store_now FROM put
      ), stored AS (
        ${storeErrors('put')}
      ), added AS (
        ${addCounts('put', asStored)}
      ), grouped AS (
        ${addErrorCounts({
          from: 'put',
          before: 'before',
          failure: 'failure',
          state: 'state',
          lane: 'lane_before',
          attempt: '0',
        })}
      )
      SELECT array_agg(put.ord), coalesce(bool_or(put.next < store_now + put.delay), false) INTO just_applied, is_sooner FROM put;
      applied := applied || coalesce(just_applied, '{}');
    END IF;

    IF cardinality(applied) < cardinality(p_id) THEN
      -- Perhaps only because a cancel has come in meanwhile.
      ${endEach(`${GIVEN} WHERE g.delay IS NOT NULL`, `${BELIEVED} AND l.cancel_requested`, `${STATE.cancelled}::smallint`, 'NULL::smallint')}
      cancelled := coalesce(just_applied, '{}');
      FOR late IN ${GIVEN} WHERE NOT g.ord = ANY (applied) LOOP
        at := late.ord;
        IF late.ord = ANY (cancelled) THEN
          answer := 1;
          RETURN NEXT;
        ELSIF late.outcome = ${OUTCOME.crashed} OR NOT ${isRecorded('late.id', 'late.run', 'late.worker', 'late.outcome')} THEN
          answer := 2;
          RETURN NEXT;
        END IF;
      END LOOP;
    END IF;
    IF p_logged IS NOT NULL THEN
      ${keepLogs(isRecorded('p_id[g.at]', 'p_run[g.at]', 'p_worker[g.at]', 'p_outcome[g.at]'))}
    END IF;
    PERFORM tell_ended(p_id);
    IF p_limited <> '{}' THEN
      is_sooner := free_slots(p_limited, p_limit, p_key, ARRAY (
        SELECT g.id FROM unnest(p_id, p_outcome) WITH ORDINALITY AS g (id, outcome, ord)
        WHERE g.outcome = ${OUTCOME.released} AND g.ord = ANY (applied))) OR is_sooner;
    END IF;
    IF is_sooner THEN
      at := -1;
      answer := 0;
      RETURN NEXT;
    END IF;
  END $$;

  /*
   * Settles one run, by which its job dies, and stores the job that reacts to it: both or neither. The partition of that job is admitted
   * first, so that it is still there when the run is settled. Answers what \`settle\` answers; or 0 at 0, and has written nothing, when the
   * partition is to be looked up again.
   */
  CREATE FUNCTION bury(${ENQUEUE_PARAMETERS}, ${BURY_PARAMETERS}
  ) RETURNS TABLE (at bigint, answer int) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    one record;
    is_stale boolean := false;
  BEGIN
    IF p_keyed <> '{}' AND NOT admit(p_keyed) THEN
      at := 0;
      answer := 0;
      RETURN NEXT;
      RETURN;
    END IF;
    FOR one IN SELECT * FROM settle(${namesOf(BURY_PARAMETERS)}) LOOP
      at := one.at;
      answer := one.answer;
      is_stale := is_stale OR answer = 2;
      RETURN NEXT;
    END LOOP;
    IF NOT is_stale THEN PERFORM enqueue(${namesOf(ENQUEUE_PARAMETERS)}); END IF;
  END $$;
`;
