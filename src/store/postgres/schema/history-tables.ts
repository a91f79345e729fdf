import { STATE } from '../../codes.ts';
import { historyColumns } from '../../history-columns.ts';

/*
 * History (../../history.ts): sql/history.ts adds up what the ledger has beyond `counted_to`. A version without this leaves
 * `settled_at` null: of its runs only those that ended their job are in the history.
 */
const lastEnd = (state: number): string => `(SELECT max(finished_at) FROM finished WHERE state = ${state})`;

export const historyTables: string = `
  CREATE TABLE history (
    step_ms int NOT NULL,                   -- the size of the bucket
    at bigint NOT NULL,                     -- its start
    name text NOT NULL,                     -- of the jobs; '' for all
    ${historyColumns.map((column) => `${column} bigint NOT NULL`).join(',\n    ')},
    PRIMARY KEY (step_ms, at, name)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);

  -- Those that have buckets of their own.
  CREATE TABLE history_names (
    name text PRIMARY KEY,
    seen_at bigint NOT NULL
  ) WITH (fillfactor = 50);

  -- One row. What was settled until counted_to is in the history. What was settled until next_at is committed, or never will
  -- be, when no transaction before next_id is left.
  CREATE TABLE history_mark (
    counted_to bigint NOT NULL,
    next_at bigint,
    next_id xid8
  ) WITH (fillfactor = 10);
  INSERT INTO history_mark (counted_to)
  SELECT coalesce(greatest(${lastEnd(STATE.completed)}, ${lastEnd(STATE.dead)}, ${lastEnd(STATE.cancelled)}), 0);

  ALTER TABLE runs ADD COLUMN settled_at bigint;
  CREATE INDEX runs_settled ON runs (settled_at) WHERE settled_at IS NOT NULL;
`;
