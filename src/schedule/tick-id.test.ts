import { describe, expect, it } from 'vitest';
import { tickId } from './tick-id.ts';

describe('the id of a tick', () => {
  it('is a UUIDv8 that begins with its time, the same in every process', () => {
    const id = tickId('nightly', Date.parse('2026-11-16T03:00:00Z'));
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(id).toBe(tickId('nightly', Date.parse('2026-11-16T03:00:00Z')));
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(Date.parse('2026-11-16T03:00:00Z'));
  });

  it('is another for another schedule or another time', () => {
    const ids = ['a', 'b'].flatMap((name) => [1, 2, 0, -1].map((tick) => tickId(name, tick)));
    expect(new Set(ids).size).toBe(ids.length);
  });
});
