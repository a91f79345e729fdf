import { ConfigError } from '../../errors.ts';
import { isTerminal } from '../../job.ts';
import { REDRIVEN } from '../error-groups.ts';
import type {
  CancelAnswer,
  DeadSelection,
  HoldTarget,
  PruneAnswer,
  Redriven,
  RedriveRefusal,
  RedriveRequest,
  Retention,
} from '../store.ts';
import { keySlot } from './keys.ts';
import type { Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function cancel(state: MemoryState, ids: readonly string[], now: number): CancelAnswer[] {
  return ids.map((id) => ({ id, result: cancelOne(state, state.rows.get(id), now) }));
}

function cancelOne(state: MemoryState, row: Row | undefined, now: number): CancelAnswer['result'] {
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

export function redrive(state: MemoryState, request: RedriveRequest, now: number): Redriven {
  const ids: string[] = [];
  const skipped: { id: string; why: RedriveRefusal }[] = [];
  // A dry run takes no keys, yet of two dead jobs with one key it must refuse the second as the real one does.
  const promised = new Set<string>();

  for (const row of selectDead(state, request)) {
    const why = refusal(state, row, request, promised);
    if (why) {
      skipped.push({ id: row.id, why });
      continue;
    }
    ids.push(row.id);
    if (wantsKey(row)) promised.add(keySlot(row.name, row.key));
    if (!request.dryRun) bringBack(state, row, request.attempts, now);
  }
  if (ids.length > 0 && !request.dryRun) state.wake.hint();
  return { ids, skipped };
}

function refusal(
  state: MemoryState,
  row: Row,
  request: RedriveRequest,
  promised: ReadonlySet<string>,
): RedriveRefusal | null {
  const { maxAttempts, maxCrashes } = row.policy;
  if (request.attempts === 'keep' && (row.attempts >= maxAttempts || row.crashes >= maxCrashes)) return 'nothing-left';
  if (!wantsKey(row)) return null;
  const holder = state.keys.holder(row.name, row.key);
  const taken = (holder && holder !== row) || promised.has(keySlot(row.name, row.key));
  return taken ? 'key-taken' : null;
}

/** A key that lasts until the first start was given up at that start; a redrive does not ask for it again. */
function wantsKey(row: Row): row is Row & { key: string } {
  return row.key !== null && row.keyLife !== 'started';
}

function bringBack(state: MemoryState, row: Row, attempts: RedriveRequest['attempts'], now: number): void {
  const again = attempts === 'reset' ? { attempts: 0, crashes: 0, previousDelayMs: null, spent: null } : {};
  state.move(row, 'ready', now, {
    ...again,
    queue: row.homeQueue,
    lane: 'redrive',
    dueAt: now,
    availableAt: now,
    firstStartedAt: null,
    finishedAt: null,
    deadReason: null,
  });
  if (wantsKey(row)) state.keys.take(row);
  state.errorGroups.move(row, REDRIVEN);
}

export function discard(state: MemoryState, selection: DeadSelection): string[] {
  return selectDead(state, selection).map((row) => {
    remove(state, row);
    return row.id;
  });
}

/** Deletes a finished job. */
function remove(state: MemoryState, row: Row): void {
  if (row.state === 'dead') state.errorGroups.move(row, { dead: -1 });
  state.remove(row);
}

/** Oldest dead first. The limit bounds what is looked at, so a refused job takes a place of it too. */
function selectDead(state: MemoryState, selection: DeadSelection): Row[] {
  const { ids, name, queue, reason, limit } = selection;
  if (ids === undefined && name === undefined && queue === undefined && reason === undefined) {
    throw new ConfigError(
      'Expected at least one of ids, name, queue or reason to select dead jobs, got none. Say which jobs are meant.',
    );
  }
  const wanted = ids && new Set(ids);
  return [...state.ended.dead]
    .filter(
      (row) =>
        (wanted === undefined || wanted.has(row.id)) &&
        (name === undefined || row.name === name) &&
        (queue === undefined || row.queue === queue) &&
        (reason === undefined || row.deadReason === reason),
    )
    .slice(0, limit);
}

export function hold(state: MemoryState, target: HoldTarget, until: number | null): void {
  state.partitions.hold(target, until);
}

export function release(state: MemoryState, target: HoldTarget): void {
  if (state.partitions.release(target)) state.wake.hint();
}

export function prune(state: MemoryState, retention: Retention, limit: number, now: number): PruneAnswer {
  const kinds = [
    [state.ended.completed, retention.completedMs],
    [state.ended.dead, retention.deadMs],
    [state.ended.cancelled, retention.cancelledMs],
  ] as const;
  const outlived = kinds.flatMap(([rows, keptMs]) =>
    keptMs === null ? [] : [...rows].filter((row) => (row.finishedAt as number) <= now - keptMs),
  );
  const gone = outlived.slice(0, limit);
  for (const row of gone) remove(state, row);
  state.gates.prune(now);
  state.errorGroups.prune(now);
  const moved = leaveAside(state, retention.asideMs, limit, now);
  return { jobs: gone.length, isDone: gone.length < limit && moved < limit };
}

/** Jobs that have waited aside for too long. Answers how many. */
function leaveAside(state: MemoryState, asideMs: number | undefined, limit: number, now: number): number {
  if (asideMs === undefined) return 0;
  const since = now - asideMs;
  const rows = state.partitions.aside().flatMap((partition) => partition.due(since));
  const moved = rows.filter(({ availableAt }) => availableAt <= since).slice(0, limit);
  for (const row of moved) state.leaveAside(row);
  if (moved.length > 0) state.wake.hint();
  return moved.length;
}
