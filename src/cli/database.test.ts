import { describe, expect, it } from 'vitest';
import { chooseDatabase, shownName } from './database.ts';

describe('the database', () => {
  it('is what --db says, else MULLIGAN_DB, else the default', () => {
    const env = { MULLIGAN_DB: 'sqlite:env.db' };
    expect(chooseDatabase('sqlite:flag.db', env)).toEqual({ url: 'sqlite:flag.db', from: '--db' });
    expect(chooseDatabase(undefined, env)).toEqual({ url: 'sqlite:env.db', from: 'MULLIGAN_DB' });
    expect(chooseDatabase(undefined, {})).toEqual({ url: 'sqlite:mulligan.db', from: 'the default' });
    expect(chooseDatabase(undefined, { MULLIGAN_DB: '' }).from).toBe('the default');
  });

  it.each(['memory:', 'memory', 'sqlite::memory:', 'sqlite://:memory:', 'jobs.db', ''])(
    'is refused when it is %j',
    (url) => {
      expect(() => chooseDatabase(url, {})).toThrow(/^--db: expected/);
    },
  );

  it('is named without what could be a password', () => {
    expect(shownName({ url: 'sqlite:a.db', from: '--db' })).toBe('sqlite:a.db');
    expect(shownName({ url: 'postgres://me:secret@host/db', from: '--db' })).toBe('postgres:...');
  });
});
