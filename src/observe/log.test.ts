import { afterEach, describe, expect, it, vi } from 'vitest';
import { type LogEntry, makeLogger, writeToStderr } from './log.ts';

afterEach(() => vi.restoreAllMocks());

/** What the default sink writes. */
function written(entry: LogEntry): string {
  const texts: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    texts.push(String(text));
    return true;
  });
  writeToStderr(entry);
  return texts.join('');
}

it('the default sink shows control characters as escapes, so that an entry is one line', () => {
  const text = written({ level: 'info', message: 'a\x1b[31m\nmulligan warn: forged', field: '\u202e' });
  expect(text).toBe('mulligan info: a\\x1b[31m\\nmulligan warn: forged field="\\u202e"\n');
});

describe('a logger', () => {
  it('sends an entry with its level, its message, its fields and its context', () => {
    const entries: LogEntry[] = [];
    let run = 1;
    const log = makeLogger(
      (entry) => entries.push(entry),
      () => ({ job: 'id', run }),
    );
    for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level](`a ${level}`, { n: 1 });
    run = 2;
    log.info('no fields');
    expect(entries).toEqual([
      ...['debug', 'info', 'warn', 'error'].map((level) => ({ level, message: `a ${level}`, n: 1, job: 'id', run: 1 })),
      { level: 'info', message: 'no fields', job: 'id', run: 2 },
    ]);
  });

  it('lets no field pass itself off as the level or the message', () => {
    const entries: LogEntry[] = [];
    makeLogger(
      (entry) => entries.push(entry),
      () => ({}),
    ).warn('real', { level: 'debug', message: 'forged' });
    expect(entries).toEqual([{ level: 'warn', message: 'real' }]);
  });

  it('survives a sink that throws', () => {
    const log = makeLogger(
      () => {
        throw new Error('sink');
      },
      () => ({}),
    );
    expect(() => log.error('anyway')).not.toThrow();
  });

  it('survives a sink that rejects later, and so does the process', async () => {
    const rejected = Promise.withResolvers<void>();
    const unhandled: unknown[] = [];
    const notice = (reason: unknown): unknown => unhandled.push(reason);
    process.on('unhandledRejection', notice);
    const log = makeLogger(
      async () => {
        rejected.resolve();
        throw new Error('sink');
      },
      () => ({}),
    );
    log.error('anyway');
    await rejected.promise;
    // Node looks for unhandled rejections when the microtasks of a turn are done.
    await new Promise(setImmediate);
    process.off('unhandledRejection', notice);
    expect(unhandled).toEqual([]);
  });
});

describe('the default sink', () => {
  it('writes one line to standard error: level, message, fields', () => {
    expect(written({ level: 'warn', message: 'the lease was lost', id: 'a', run: 2, tags: ['x'] })).toBe(
      'mulligan warn: the lease was lost id="a" run=2 tags=["x"]\n',
    );
  });

  it('leaves out debug entries', () => {
    expect(written({ level: 'debug', message: 'noise' })).toBe('');
  });

  it('shows an error by its name and message, on one line', () => {
    expect(written({ level: 'error', message: 'no', error: new TypeError('two\nlines') })).toBe(
      'mulligan error: no error="TypeError: two\\nlines"\n',
    );
  });

  const cyclic: Record<string, unknown> = Object.create(null);
  cyclic.self = cyclic;
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('trap');
      },
      getPrototypeOf() {
        throw new Error('trap');
      },
    },
  );

  it.each<[string, unknown, string]>([
    ['undefined', undefined, 'undefined'],
    ['a BigInt', 10n, '10n'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['a cycle', cyclic, 'an object with the key self'],
    ['a hostile proxy', hostile, 'a value that cannot be read'],
  ])('shows %s too', (_, value, text) => {
    expect(written({ level: 'info', message: 'm', value })).toBe(`mulligan info: m value=${text}\n`);
  });
});
