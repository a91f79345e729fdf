/*
 * Failures over time (../error-history.ts): `rollUp` writes them together with the history. A version without this moves the
 * mark of the history alone: failures that it adds up are missing here.
 */
export const errorHistoryTables = `
  CREATE TABLE error_series (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    queue INTEGER NOT NULL,                -- where the jobs were enqueued
    name INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,              -- the last bucket of five minutes in which one failed
    UNIQUE (fingerprint, queue, name)
  ) STRICT;

  CREATE TABLE error_history (
    series INTEGER NOT NULL,
    step_ms INTEGER NOT NULL,              -- the size of the bucket
    at INTEGER NOT NULL,                   -- its start
    failures INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    PRIMARY KEY (series, step_ms, at)
  ) STRICT, WITHOUT ROWID;
`;
