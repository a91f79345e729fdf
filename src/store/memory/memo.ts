import type { Fence } from '../store.ts';
import type { MemoryState } from './state.ts';

/** The first result of an effect stands: a second one under its key would mean that it happened twice. */
export function remember(state: MemoryState, fence: Fence, key: string, value: string): boolean {
  const row = state.held(fence);
  if (!row) return false;
  if (!row.memos.has(key)) row.memos.set(key, value);
  return true;
}

export function recall(state: MemoryState, jobId: string): ReadonlyMap<string, string> {
  return new Map(state.rows.get(jobId)?.memos);
}
