/** Workers, as they describe themselves. */
export const workersTables = `
  CREATE TABLE worker_registry (
    id TEXT PRIMARY KEY,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    description TEXT NOT NULL              -- JSON
  ) STRICT;
`;
