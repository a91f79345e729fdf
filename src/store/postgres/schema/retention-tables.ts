/*
 * How long finished jobs are kept: see ../../retention.ts. A version without this deletes what outlived the retention that its own
 * process was opened with.
 */
export const retentionTables = `
  CREATE TABLE retention (
    name text NOT NULL,                     -- '' for all names that have no rule of their own
    state smallint NOT NULL,
    is_code boolean NOT NULL,               -- false when it was set by hand
    kept_ms bigint,                         -- null for ever
    PRIMARY KEY (name, state, is_code)
  );
`;
