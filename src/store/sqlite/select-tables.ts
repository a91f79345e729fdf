import { STATE } from '../codes.ts';

/*
 * Selecting jobs by their last error, tags and key; and bulk actions (change.ts). Versions without these leave the columns
 * null, and rows of `tags` behind when they delete a job: a read of `tags` also compares the job's own list.
 */
export const selectTables: string = `
  ALTER TABLE jobs ADD COLUMN tags TEXT;               -- a JSON list; null for none

  CREATE TABLE tags (
    tag TEXT NOT NULL,
    seq INTEGER NOT NULL,                  -- of the job
    PRIMARY KEY (tag, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX jobs_key ON jobs (key) WHERE key IS NOT NULL;
  -- Written when a job first fails, and not with each of its runs.
  CREATE INDEX jobs_error ON jobs (fingerprint) WHERE fingerprint IS NOT NULL;
  CREATE INDEX jobs_dead_error ON jobs (fingerprint, finished_at)
    WHERE state = ${STATE.dead} AND finished_at IS NOT NULL AND fingerprint IS NOT NULL;
  CREATE INDEX jobs_dead_name ON jobs (name, finished_at) WHERE state = ${STATE.dead} AND finished_at IS NOT NULL;

  CREATE TABLE operations (
    seq INTEGER PRIMARY KEY,               -- the order in which they began
    id TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL,
    by TEXT NOT NULL,
    request TEXT NOT NULL,                 -- what makes two orders the same
    selection TEXT NOT NULL,               -- JSON
    state TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    changed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    canary TEXT NOT NULL,                  -- JSON: the first jobs that were changed
    note TEXT,
    cursor TEXT,                           -- JSON: the job that was looked at last; null for none
    next_due_at REAL NOT NULL              -- of the next job, where due times are spread
  ) STRICT;
  CREATE UNIQUE INDEX operations_running ON operations (action, request) WHERE ended_at IS NULL;
  CREATE INDEX operations_updated ON operations (updated_at);
`;
