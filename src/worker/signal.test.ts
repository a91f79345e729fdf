import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Signal } from './signal.ts';

function waiting(signal: Signal, timeoutMs: number) {
  const state = { over: false };
  void signal.wait(timeoutMs).then(() => {
    state.over = true;
  });
  return state;
}

describe('a signal', () => {
  it('lets its waiter go when it is given', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    const waiter = waiting(signal, 1_000);
    await clock.advance(999);
    expect(waiter.over).toBe(false);
    signal.notify();
    await clock.advance(0);
    expect(waiter.over).toBe(true);
  });

  it('lets its waiter go after the timeout', async () => {
    const clock = new VirtualClock();
    const waiter = waiting(new Signal(clock), 1_000);
    await clock.advance(1_000);
    expect(waiter.over).toBe(true);
  });

  it('that is given before anyone waits is not missed', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    signal.notify();
    const waiter = waiting(signal, 1_000);
    await clock.advance(0);
    expect(waiter.over).toBe(true);
  });

  it('that is given many times before anyone waits counts once', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    for (let times = 0; times < 3; times++) signal.notify();
    await signal.wait(1_000);
    const again = waiting(signal, 1_000);
    await clock.advance(999);
    expect(again.over).toBe(false);
    await clock.advance(1);
    expect(again.over).toBe(true);
  });

  it('that ended a wait is spent', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    const first = waiting(signal, 1_000);
    signal.notify();
    await clock.advance(0);
    const second = waiting(signal, 1_000);
    await clock.advance(10);
    expect([first.over, second.over]).toEqual([true, false]);
    await clock.advance(990);
  });

  it('that comes after a timeout is kept for the next wait', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    const first = waiting(signal, 100);
    await clock.advance(100);
    signal.notify();
    const second = waiting(signal, 1_000_000);
    await clock.advance(0);
    expect([first.over, second.over]).toEqual([true, true]);
  });

  it('leaves no timer behind, whichever way a wait ends', async () => {
    const clock = new VirtualClock();
    const signal = new Signal(clock);
    const notified = signal.wait(1_000);
    signal.notify();
    await notified;
    expect(clock.pending).toBe(0);
    const timedOut = signal.wait(1_000);
    await clock.advance(1_000);
    await timedOut;
    signal.notify();
    await signal.wait(1_000);
    expect(clock.pending).toBe(0);
  });
});
