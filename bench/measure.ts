import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../src/clock.ts';

/** Jobs per second of `work`, which handles `count` jobs. */
export async function rate(count: number, work: () => void | Promise<void>): Promise<number> {
  const startedAt = systemClock.monotonic();
  await work();
  return (count * 1_000) / (systemClock.monotonic() - startedAt);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

/** A folder that is gone afterwards. */
export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-bench-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The 99th percentile of the event loop's delay while `work` goes on, in ms. */
export async function loopDelayP99Ms(work: () => Promise<void>): Promise<number> {
  const monitor = monitorEventLoopDelay({ resolution: 1 });
  monitor.enable();
  await work();
  monitor.disable();
  return monitor.percentile(99) / 1e6;
}
