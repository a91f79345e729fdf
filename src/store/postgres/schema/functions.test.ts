import { describe, expect, it } from 'vitest';
import { functionSet } from './functions.ts';

const SOURCE = `
  CREATE TYPE taken AS (id uuid);
  CREATE FUNCTION keys(p_id uuid) RETURNS SETOF taken LANGUAGE plpgsql AS $$
  DECLARE one taken; taken_at int;
  BEGIN
    INSERT INTO keys (id) SELECT id FROM keys WHERE other_keys(id) AND keys.id = p_id;
    PERFORM now_ms();
    RETURN QUERY SELECT * FROM more_keys(p_id), keys(p_id);
  END $$;
  CREATE FUNCTION more_keys(p_id uuid) RETURNS SETOF taken LANGUAGE sql AS $$ SELECT ROW(p_id)::taken $$;`;

describe('a set of functions', () => {
  const set = functionSet(SOURCE);
  const v = set.version;

  it('has a version that is a digest of its SQL', () => {
    expect(v).toMatch(/^[0-9a-f]{8}$/);
    expect(functionSet(SOURCE).version).toBe(v);
    expect(functionSet(`${SOURCE} `).version).not.toBe(v);
  });

  it('versions what it creates, where it is created and where it is called, and nothing else', () => {
    expect(set.sql).toBe(`
  CREATE TYPE taken_${v} AS (id uuid);
  CREATE FUNCTION keys_${v}(p_id uuid) RETURNS SETOF taken_${v} LANGUAGE plpgsql AS $$
  DECLARE one taken_${v}; taken_at int;
  BEGIN
    INSERT INTO keys (id) SELECT id FROM keys WHERE other_keys(id) AND keys.id = p_id;
    PERFORM now_ms();
    RETURN QUERY SELECT * FROM more_keys_${v}(p_id), keys_${v}(p_id);
  END $$;
  CREATE FUNCTION more_keys_${v}(p_id uuid) RETURNS SETOF taken_${v} LANGUAGE sql AS $$ SELECT ROW(p_id)::taken_${v} $$;`);
  });

  it('is called by statements under its version; tables and other functions keep their names', () => {
    expect(set.resolve('SELECT * FROM @.keys($1), @.keys, @.now_ms(), keys(1)', 'user')).toBe(
      `SELECT * FROM "user".keys_${v}($1), "user".keys, "user".now_ms(), keys(1)`,
    );
  });

  it('refuses a name that the rule would miss', () => {
    expect(() => functionSet('CREATE FUNCTION a (b int)')).toThrow('CREATE FUNCTION a( without a space');
  });
});
