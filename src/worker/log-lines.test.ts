import { describe, expect, it } from 'vitest';
import { parseRunLog, type RunLog } from '../run-log.ts';
import { LogLines } from './log-lines.ts';

function logged(write: (lines: LogLines) => void): RunLog {
  const lines = new LogLines();
  write(lines);
  return parseRunLog(1, lines.text as string);
}

function fieldsOf(fields: unknown): unknown {
  return logged((lines) => lines.add('info', 0, 'm', fields)).lines[0]?.fields;
}

describe('the lines that are kept of a log', () => {
  it('are none when none was written', () => {
    expect(new LogLines().text).toBeUndefined();
  });

  it('have level, time, message and fields, as they were when they were written', () => {
    const order = { id: 7, state: 'open' };
    const log = logged((lines) => {
      lines.add('info', 1, 'started', { order });
      order.state = 'closed';
      lines.add('warn', 2, 'slow');
    });
    expect(log).toEqual({
      run: 1,
      dropped: 0,
      lines: [
        { level: 'info', at: 1, message: 'started', fields: { order: { id: 7, state: 'open' } } },
        { level: 'warn', at: 2, message: 'slow' },
      ],
    });
  });

  it('are not those of level debug', () => {
    const lines = new LogLines();
    lines.add('debug', 0, 'detail');
    expect(lines.text).toBeUndefined();
  });

  it('are the last 50, with the number of those before', () => {
    const { lines, dropped } = logged((all) => {
      for (let n = 0; n < 120; n++) all.add('info', n, `line ${n}`);
    });
    expect([lines.length, lines[0]?.at, lines.at(-1)?.at, dropped]).toEqual([50, 70, 119, 70]);
  });

  it('take 8 KiB at most, whatever is written', () => {
    const all = new LogLines();
    for (let n = 0; n < 40; n++) all.add('info', n, '\u{1f3cc}'.repeat(10_000), { big: ['x'.repeat(5_000), 'y'] });
    const { lines, dropped } = parseRunLog(1, all.text as string);
    expect(new TextEncoder().encode(all.text).length).toBeLessThanOrEqual(8 * 1_024 + 100);
    expect(lines.length + dropped).toBe(40);
    expect(lines.at(-1)?.at).toBe(39);
    expect(lines.at(-1)?.message).toMatch(/\u{1f3cc}\.\.\.$/u);
  });

  it('have room for the longest line there can be', () => {
    const control = '\u0001'.repeat(2_000);
    const names = Array.from({ length: 30 }, (_, n) => [`${n}${control}`, control]);
    const { lines, dropped } = logged((all) => {
      all.add('info', 1, 'before');
      all.add('error', 2, control, Object.fromEntries(names));
    });
    expect([lines.at(-1)?.at, dropped]).toEqual([2, 0]);
  });

  it('have no credentials, in messages, fields and nested fields', () => {
    const log = logged((lines) =>
      lines.add('error', 0, 'GET https://user:hunter2@example.com failed', {
        password: 'hunter2 and more',
        headers: { Authorization: ['hunter2'], accept: 'text/html' },
        url: 'https://example.com/?token=hunter2',
        error: Object.assign(new Error('password: hunter2'), { config: 'hunter2' }),
        tokens: 5,
      }),
    );
    expect(JSON.stringify(log)).not.toContain('hunter2');
    expect(log.lines[0]?.fields).toMatchObject({
      password: '***',
      headers: { Authorization: '***', accept: 'text/html' },
      tokens: 5,
    });
  });

  it('say of an error what it is', () => {
    expect(fieldsOf({ error: new TypeError('no number') })).toEqual({ error: 'TypeError: no number' });
  });

  it('leave out fields that cannot be read or are too large, and keep the others', () => {
    const circle: Record<string, unknown> = { a: 1 };
    circle.self = circle;
    const hostile = {
      circle,
      get thrown(): never {
        throw new Error('no');
      },
      huge: Array.from({ length: 100_000 }, (_, n) => n),
      long: Array.from({ length: 100 }, () => 'x'.repeat(100)),
      call: () => {},
      big: 10n,
      kept: [null, 'ok'],
    };
    const leftOut = '...';
    expect(fieldsOf(hostile)).toEqual({
      circle: leftOut,
      thrown: leftOut,
      huge: leftOut,
      long: leftOut,
      big: '10',
      kept: [null, 'ok'],
    });
  });

  it.each([null, 'text', 7, () => {}])('have no fields when %s is given as fields', (fields) => {
    expect(fieldsOf(fields)).toBeUndefined();
  });

  it('have no fields when these cannot be listed', () => {
    const ownKeys = (): never => {
      throw new Error('no');
    };
    expect(fieldsOf(new Proxy({}, { ownKeys }))).toBeUndefined();
  });

  it('say what the message was when it was no text', () => {
    const { lines } = logged((all) => all.add('info', 0, { a: 1 }));
    expect(lines[0]?.message).toMatch(/object|\{/);
  });
});
