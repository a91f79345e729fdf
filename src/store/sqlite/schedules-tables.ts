/** A version without schedules ignores them: its workers fire no ticks. */
export const scheduleTables: string = `
  CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    version TEXT NOT NULL,                 -- another one with each write
    next_at INTEGER,                       -- null when it has no next tick
    schedule TEXT NOT NULL                 -- JSON, all of the above included
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
`;
