import type { LimitGuard, Payload } from './peer.ts';
import type { Span } from './recorder.ts';

/**
 * Under which key a job counts; '' where all share one. Jobs that only fill the queue have one of their own. The others lie in no
 * order among the keys, as they would in a real queue.
 */
export function limitKey(n: Payload['n'], { keys }: LimitGuard): string {
  if (keys === null) return '';
  return n < 0 ? 'crowd' : String(mixed(n) % keys);
}

/** The last steps of MurmurHash3: neighbours have nothing in common. */
function mixed(n: number): number {
  let hash = n + 1;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** By how much the clocks of two processes may differ. */
const CLOCKS_MS = 1;

/** How many jobs of one key ran at the same time, at the most, in all processes together. */
export function mostAtOnce(spans: readonly Span[], guard: LimitGuard): number {
  const changes = spans.flatMap(({ n, from, to }) => {
    const key = limitKey(n, guard);
    return [
      { key, at: from, by: 1 },
      { key, at: Math.max(from, to - CLOCKS_MS), by: -1 },
    ];
  });
  const running = new Map<string, number>();
  let most = 0;
  for (const { key, by } of changes.sort((a, b) => a.at - b.at || a.by - b.by)) {
    const now = (running.get(key) ?? 0) + by;
    running.set(key, now);
    most = Math.max(most, now);
  }
  return most;
}
