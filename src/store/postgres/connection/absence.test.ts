import { beforeEach, describe, expect, it } from 'vitest';
import { Absence, type CallEnd } from './absence.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

let now = 0;
let absence: Absence;
beforeEach(() => {
  now = HOUR_MS;
  absence = new Absence(() => now);
});

function call(how: CallEnd, tookMs = 0): void {
  const end = absence.begin();
  now += tookMs;
  end(how);
}

describe('the time for which a process could not reach the server', () => {
  it('is 0 when every call succeeded', () => {
    call('written');
    expect(absence.take()).toBe(0);
  });

  it('lasts from the first call that failed to the next one that succeeded, and is reported once', () => {
    for (let second = 0; second < 20; second++) {
      call('failed', SECOND_MS);
      now += SECOND_MS;
    }
    call('written');
    expect(absence.take()).toBe(40 * SECOND_MS);
    expect(absence.take()).toBe(0);
  });

  it('goes on while reads succeed and writes fail, as on a server that only reads', () => {
    for (let n = 0; n < 100; n++) {
      call('failed');
      call('read');
      now += 100;
    }
    expect(absence.take()).toBe(10 * SECOND_MS);
  });

  it('is reported while it goes on, to the call that may be the first to get through', () => {
    call('failed');
    now += 30 * SECOND_MS;
    expect(absence.take()).toBe(30 * SECOND_MS);
    call('written');
    expect(absence.take()).toBe(0);
  });

  it('is reported again when the call that it was reported to failed', () => {
    call('failed');
    now += 30 * SECOND_MS;
    expect(absence.take()).toBe(30 * SECOND_MS);
    call('failed');
    now += SECOND_MS;
    expect(absence.take()).toBe(31 * SECOND_MS);
  });

  it('does not contain an hour without calls after one that failed', () => {
    call('failed');
    now += HOUR_MS;
    expect(absence.take()).toBe(0);
    call('written');
    expect(absence.take()).toBe(0);
  });

  it('begins with the first of the calls that fail now, not with one that failed an hour ago', () => {
    call('failed');
    now += HOUR_MS;
    call('failed', 5 * SECOND_MS);
    call('written');
    expect(absence.take()).toBe(5 * SECOND_MS);
  });

  it('begins when an idle connection breaks', () => {
    absence.failed();
    now += 10 * SECOND_MS;
    call('written');
    expect(absence.take()).toBe(10 * SECOND_MS);
  });

  it('contains a call that waited and one that still waits, as behind a lock', () => {
    call('written', 3 * SECOND_MS);
    expect(absence.take()).toBe(3 * SECOND_MS);
    absence.begin();
    now += 4 * SECOND_MS;
    expect(absence.take()).toBe(4 * SECOND_MS);
  });

  it('is 0 when it was too short to cost a lease', () => {
    call('failed');
    now += 999;
    call('written');
    expect(absence.take()).toBe(0);
  });
});
