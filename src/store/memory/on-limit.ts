import type { LimitAction } from '../../limit/limit.ts';
import { cancelOne } from './operate.ts';
import type { Row } from './row.ts';
import type { MemoryState } from './state.ts';

/** A live job of a full key, when that keeps the new job from being stored. */
export function jobOfFullKey({ limits }: MemoryState, actions: readonly LimitAction[]): Row | null {
  const refusing = actions.filter(({ action }) => action === 'cancel-newest');
  return refusing.flatMap((one) => limits.liveWhenFull(one))[0] ?? null;
}

/** Makes way for a job that is stored next. */
export function cancelOldest(state: MemoryState, actions: readonly LimitAction[], now: number): void {
  for (const one of actions) {
    if (one.action !== 'cancel-oldest') continue;
    const unstarted = state.limits.liveWhenFull(one).filter(({ runs }) => runs === 0);
    const [oldest] = unstarted.sort((a, b) => a.accepted - b.accepted);
    if (oldest !== undefined) cancelOne(state, oldest, now);
  }
}
