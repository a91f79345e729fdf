import { describe, expect, it } from 'vitest';
import { InFlight } from './in-flight.ts';

describe('transactions in flight', () => {
  it('leave everything seen but the last moment when there are none', () => {
    const inFlight = new InFlight();
    expect(inFlight.horizon(10_000)).toBe(9_800);
    inFlight.see(10_000, '50:50:');
    expect(inFlight.horizon(10_000)).toBe(9_800);
  });

  it('may have written since the claim that did not see them yet', () => {
    const inFlight = new InFlight();
    inFlight.see(10_000, '50:50:');
    inFlight.see(10_500, '50:52:50');
    expect(inFlight.horizon(10_500)).toBe(9_800);
    inFlight.see(11_000, '50:60:50,55');
    expect(inFlight.horizon(11_000)).toBe(9_800);
    inFlight.see(11_500, '55:60:55');
    expect(inFlight.horizon(11_500)).toBe(10_300);
    inFlight.see(12_000, '60:60:');
    expect(inFlight.horizon(12_000)).toBe(11_800);
  });

  it('are not waited for when they take long', () => {
    const inFlight = new InFlight();
    inFlight.see(10_000, '50:51:50');
    inFlight.see(12_999, '50:60:50,55');
    expect(inFlight.horizon(12_999)).toBe(9_800);
    inFlight.see(13_000, '50:60:50');
    expect(inFlight.horizon(13_000)).toBe(12_800);
  });

  it('are not taken to have ended by a claim that began before them', () => {
    const inFlight = new InFlight();
    inFlight.see(10_000, '50:56:50,55');
    inFlight.see(9_900, '50:52:50');
    expect(inFlight.horizon(10_000)).toBe(9_800);
    inFlight.see(10_200, '55:60:55');
    expect(inFlight.horizon(10_200)).toBe(9_800);
  });
});
