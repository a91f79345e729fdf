import { isTerminal } from '../../job.ts';
import { OPERATIONS_KEPT_MS } from '../change.ts';
import { cancelRow, holdRow } from '../orders.ts';
import { pruneSteps } from '../retention.ts';
import type { CancelAnswer, HoldTarget, Order, PruneAnswer } from '../store.ts';
import { record } from './operations.ts';
import type { Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function cancel(state: MemoryState, ids: readonly string[], now: number, order?: Order): CancelAnswer[] {
  const answers = ids.map((id) => ({ id, result: cancelOne(state, state.rows.get(id), now) }));
  if (order) record(state, cancelRow(order, answers), now);
  return answers;
}

export function cancelOne(state: MemoryState, row: Row | undefined, now: number): CancelAnswer['result'] {
  if (!row) return 'not-found';
  if (isTerminal(row.state)) return 'already-ended';
  if (row.state === 'running') {
    row.cancelRequested = true;
    return 'cancelling';
  }
  state.move(row, 'cancelled', now, { finishedAt: now });
  state.errorGroups.move(row, { failing: -1 });
  return 'cancelled';
}

/** Deletes a finished job. */
export function remove(state: MemoryState, row: Row): void {
  if (row.state === 'dead') state.errorGroups.move(row, { dead: -1 });
  state.remove(row);
}

export function hold(
  state: MemoryState,
  target: HoldTarget,
  until: number | null,
  now: number,
  order: Order | undefined,
): void {
  state.partitions.hold(target, until);
  if (order) record(state, holdRow(order, 'pause', target), now);
  state.wake.hint();
}

export function release(state: MemoryState, target: HoldTarget, now: number, order: Order | undefined): void {
  state.partitions.release(target);
  if (order) record(state, holdRow(order, 'resume', target), now);
  state.wake.hint();
}

export function prune(state: MemoryState, limit: number, asideMs: number | null, now: number): PruneAnswer {
  const outlived = pruneSteps(state.retention).flatMap((step) => {
    const names = new Set(step.names);
    const isOld = ({ name, finishedAt }: Row): boolean =>
      (finishedAt as number) <= now - step.keptMs && names.has(name) !== step.isOthers;
    return [...state.ended[step.state]].filter(isOld);
  });
  const gone = outlived.slice(0, limit);
  for (const row of gone) remove(state, row);
  state.gates.prune(now);
  state.errorGroups.prune(now);
  state.keys.prune(now);
  pruneOperations(state, now);
  const moved = leaveAside(state, asideMs, limit, now);
  return { jobs: gone.length, isDone: gone.length < limit && moved < limit };
}

function pruneOperations(state: MemoryState, now: number): void {
  for (const { id, updatedAt } of state.operations.values()) {
    if (updatedAt <= now - OPERATIONS_KEPT_MS) state.operations.delete(id);
  }
}

/** Jobs that have waited aside for too long. Answers how many. */
function leaveAside(state: MemoryState, asideMs: number | null, limit: number, now: number): number {
  if (asideMs === null) return 0;
  const since = now - asideMs;
  const rows = state.partitions.aside().flatMap((partition) => partition.due(since));
  const moved = rows.filter(({ availableAt }) => availableAt <= since).slice(0, limit);
  for (const row of moved) state.leaveAside(row);
  if (moved.length > 0) state.wake.hint();
  return moved.length;
}
