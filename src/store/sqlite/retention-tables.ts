/*
 * How long finished jobs are kept: see ../retention.ts. A version without this deletes what outlived the retention that its own
 * process was opened with.
 */
export const retentionTables = `
  CREATE TABLE retention (
    name TEXT NOT NULL,                    -- '' for all names that have no rule of their own
    state INTEGER NOT NULL,
    is_code INTEGER NOT NULL,              -- 0 when it was set by hand
    kept_ms INTEGER,                       -- null for ever
    PRIMARY KEY (name, state, is_code)
  ) STRICT, WITHOUT ROWID;
`;

/** Finished jobs in the order they ended. */
export type FinishedPlace = readonly [finishedAt: number, seq: number];
export const OLDEST_FINISHED: FinishedPlace = [Number.MIN_SAFE_INTEGER, 0];
