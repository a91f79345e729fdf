/*
 * Tables that were dropped and made again, or restored from a dump, number their names differently. A process that
 * cached such numbers would put jobs into another queue, so every statement that uses cached numbers carries the
 * identity of the tables it read them from, and the server refuses it when the identity is another one.
 */

/** The first tables of a schema: which tables these are, and which sets of functions are installed beside them. */
export const identityTables = `
  -- One row. A program that knows table version minimum_reader or a later one can use these tables.
  CREATE TABLE schema_identity (
    id uuid NOT NULL,
    version int NOT NULL,
    minimum_reader int NOT NULL
  );
  INSERT INTO schema_identity VALUES (gen_random_uuid(), 1, 1);

  CREATE TABLE function_sets (
    version text PRIMARY KEY,
    installed_at timestamptz NOT NULL DEFAULT now()
  );
`;

/**
 * The identity as one value, of the row of schema_identity. A restored dump has the id of the tables it was made from,
 * but its tables are new ones and have oids of their own, so the table's oid is part of it.
 */
export const IDENTITY = 'md5(id::text || tableoid::text)::uuid';
