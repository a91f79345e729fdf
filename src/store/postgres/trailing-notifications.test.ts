import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { TrailingNotifications } from './trailing-notifications.ts';

function recorded(): { clock: VirtualClock; trailing: TrailingNotifications; sentAt: number[] } {
  const clock = new VirtualClock();
  const startedAt = clock.monotonic();
  const sentAt: number[] = [];
  const trailing = new TrailingNotifications(clock, () => void sentAt.push(clock.monotonic() - startedAt));
  return { clock, trailing, sentAt };
}

describe('trailing notifications', () => {
  it('are 10 ms apart at first, then a tenth of the time since the enqueue, and end after 3 s', async () => {
    const { clock, trailing, sentAt } = recorded();
    trailing.start();
    await clock.advance(60_000);
    expect(sentAt.slice(0, 10)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    for (const [index, at] of sentAt.slice(10).entries()) expect(at).toBeCloseTo(100 * 1.1 ** (index + 1), 5);
    expect(sentAt.filter((at) => at >= 3_000)).toHaveLength(1);
    expect(sentAt.length).toBeLessThan(50);
    expect(clock.pending).toBe(0);
  });

  it('are sent every 10 ms while transactions follow each other without a pause', async () => {
    const { clock, trailing, sentAt } = recorded();
    for (let ms = 0; ms < 100; ms++) {
      trailing.start();
      await clock.advance(1);
    }
    expect(sentAt).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
  });

  it('begin again with the next enqueue', async () => {
    const { clock, trailing, sentAt } = recorded();
    trailing.start();
    await clock.advance(1_000);
    sentAt.length = 0;
    trailing.start();
    await clock.advance(25);
    expect(sentAt).toEqual([1_010, 1_020]);
  });

  it('leave no timer when they are cancelled, and say whether more were to come', async () => {
    const { clock, trailing, sentAt } = recorded();
    expect(trailing.cancel()).toBe(false);
    trailing.start();
    expect(trailing.cancel()).toBe(true);
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(sentAt).toEqual([]);
  });
});
