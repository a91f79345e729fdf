import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { readTiming, type TimingOptions } from './timing.ts';

const read = (options: TimingOptions) => readTiming(options, 'set');
const refusal = (options: TimingOptions): string => {
  try {
    read(options);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error('it was accepted');
};

describe('a timing', () => {
  it('of cron is in UTC unless a time zone is given', () => {
    expect(read({ cron: '0 3 * * *' })).toEqual({ kind: 'cron', cron: '0 3 * * *', timezone: 'UTC' });
    expect(read({ cron: '0 3 * * *', timezone: 'Asia/Tokyo' })).toMatchObject({ timezone: 'Asia/Tokyo' });
  });

  it('of an interval is anchored at the epoch unless an anchor is given', () => {
    expect(read({ every: '5m' })).toEqual({ kind: 'every', everyMs: 300_000, anchor: 0 });
    expect(read({ every: '5m', anchor: new Date(7) })).toEqual({ kind: 'every', everyMs: 300_000, anchor: 7 });
  });

  it('of a one-off is its time', () => {
    expect(read({ at: new Date(7) })).toEqual({ kind: 'at', at: 7 });
  });
});

describe('a timing is refused', () => {
  it('unless exactly one of cron, every and at is given', () => {
    expect(refusal({})).toBe('set: expected one of cron, every or at, got none. Give exactly one of them.');
    expect(refusal({ cron: '* * * * *', every: '1m' })).toContain('got cron and every');
  });

  it.each([
    ['61 * * * *', 'The minute is wrong ("61")'],
    ['* 25 * * *', 'The hour is wrong ("25")'],
    ['* * * 13 *', 'The month is wrong ("13")'],
    ['* * * * MON-', 'The day of the week is wrong ("MON-")'],
    ['* * 0 * *', 'The day of the month is wrong ("0")'],
    ['99 * * * * *', 'The second is wrong ("99")'],
    ['* * *', 'It has 3 fields.'],
    ['0 0 3 * * * 2030', 'It has 7 fields.'],
    ['', 'It has 1 fields.'],
  ])('when the pattern %j is wrong, and says where', (cron, where) => {
    const message = refusal({ cron });
    expect(message).toContain("set: cron: expected a cron pattern of 5 or 6 fields, such as '0 3 * * *', got ");
    expect(message).toContain(where);
  });

  it('when its time zone is unknown', () => {
    expect(refusal({ cron: '* * * * *', timezone: 'Mars/Olympus' })).toBe(
      `set: timezone: expected the IANA name of a time zone, such as 'Europe/Berlin', got "Mars/Olympus".`,
    );
  });

  it('when an option does not belong to it', () => {
    expect(refusal({ every: '1m', timezone: 'UTC' })).toContain('expected timezone only together with cron');
    expect(refusal({ cron: '* * * * *', anchor: new Date(0) })).toContain('expected anchor only together with every');
  });

  it.each(['999ms', '366d', '-1s', 'often'] as const)('when it ticks every %s', (every) => {
    expect(refusal({ every: every as '1s' })).toContain('set: every: expected');
  });

  it('when a date is none', () => {
    expect(refusal({ at: new Date(Number.NaN) })).toContain('set: at: expected a valid Date');
    expect(refusal({ at: '2026-01-01' as unknown as Date })).toContain('set: at: expected a valid Date');
    expect(refusal({ cron: 7 as unknown as string })).toContain('set: cron: expected a cron pattern');
  });
});
