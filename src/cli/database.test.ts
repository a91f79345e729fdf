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

  it.each([
    'memory:',
    'memory',
    'sqlite::memory:',
    'sqlite://:memory:',
    'jobs.db',
    'mysql://host/db',
    'postgress://host/db',
    '',
  ])('is refused when it is %j', (url) => {
    expect(() => chooseDatabase(url, {})).toThrow(/^--db: expected/);
  });

  it('is refused with a suggestion', () => {
    expect(() => chooseDatabase('jobs.db', {})).toThrow(
      '--db: expected sqlite:FILE, postgres://HOST/DATABASE or https://HOST, got "jobs.db". Did you mean sqlite:jobs.db?',
    );
    expect(() => chooseDatabase('postgress://h/db', {})).toThrow('Did you mean postgres:?');
  });

  it('is shown without its password', () => {
    expect(shownName({ url: 'sqlite:a.db', from: '--db' })).toBe('sqlite:a.db');
    const url = 'postgres://me:s@cr3t@one:5432,two/db?schema=s&password=secret';
    expect(shownName({ url, from: '--db' })).toBe('postgres://one:5432,two/db');
  });
});
