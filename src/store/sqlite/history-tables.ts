import { historyColumns } from '../history-columns.ts';

/*
 * History (../history.ts): `rollUp` adds up what the ledger has beyond `counted_to`. Completed runs are found by the end of
 * their jobs (jobs_finished), all others by `settled_at`, so that a run that completes writes nothing more than before. A version
 * without this leaves `settled_at` null: of its runs only those that completed are in the history.
 */
export const historyTables: string = `
  CREATE TABLE history (
    step_ms INTEGER NOT NULL,              -- the size of the bucket
    at INTEGER NOT NULL,                   -- its start
    name TEXT NOT NULL,                    -- of the jobs; '' for all
    ${historyColumns.map((column) => `${column} INTEGER NOT NULL`).join(',\n    ')},
    PRIMARY KEY (step_ms, at, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE history_names (
    name TEXT PRIMARY KEY,                 -- those that have buckets of their own
    seen_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE history_mark (
    counted_to INTEGER NOT NULL            -- what was settled until then is in the history
  ) STRICT;
  INSERT INTO history_mark SELECT coalesce(max(finished_at), 0) FROM jobs WHERE finished_at IS NOT NULL;

  ALTER TABLE runs ADD COLUMN settled_at INTEGER; -- null for those that completed
  CREATE INDEX runs_settled ON runs (settled_at) WHERE settled_at IS NOT NULL;
`;
