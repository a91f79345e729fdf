import { isTerminal } from '../../job.ts';
import {
  type ChangeAnswer,
  type ChangeRequest,
  isExhausted,
  RESUMED_WITHIN_MS,
  runningSince,
  type SkipReason,
  sizeOfPart,
  stateAfterStop,
  statesToChange,
} from '../change.ts';
import { REDRIVEN } from '../error-groups.ts';
import { isSelected, type JobSelection, statesOf } from '../selection.ts';
import { cancelOne, remove } from './operate.ts';
import { end, newOperation, toOperation } from './operations.ts';
import type { OperationRow, Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function change(state: MemoryState, request: ChangeRequest, now: number): ChangeAnswer {
  const operation = operationFor(state, request, now);
  const ids: string[] = [];
  const skipped: { id: string; why: SkipReason }[] = [];
  let cancelling = 0;
  if (request.stop !== undefined && operation.state !== 'stopped') {
    end(operation, stateAfterStop(request.action), now, request.stop);
  }
  const most = operation.endedAt === null ? sizeOfPart(operation, request.part) : 0;
  if (most > 0) {
    const rows = candidates(state, operation, now);
    for (const row of rows.slice(0, most)) {
      operation.cursor = positionOf(row);
      const why = apply(state, row, request, operation, now);
      if (why === null) ids.push(row.id);
      else skipped.push({ id: row.id, why });
      if (request.action === 'cancel' && row.state === 'running') cancelling++;
    }
    operation.changed += ids.length;
    operation.skipped += skipped.length;
    operation.updatedAt = now;
    operation.options = request.options ?? operation.options;
    operation.canary.push(...ids.slice(0, Math.max(0, request.canary - operation.canary.length)));
    if (rows.length <= most || isExhausted(operation)) end(operation, 'done', now, null);
    if (ids.length > 0 && request.action !== 'discard') state.wake.hint();
  }
  return { operation: toOperation(operation), ids, skipped, cancelling };
}

function operationFor(
  state: MemoryState,
  { id, action, order, selection, by, options }: ChangeRequest,
  now: number,
): OperationRow {
  for (const row of state.operations.values()) {
    if (row.id === id) return row;
    const isSame = row.action === action && row.order === order && row.endedAt === null;
    if (!isSame) continue;
    if (row.updatedAt > now - RESUMED_WITHIN_MS) return row;
    end(row, 'stopped', now, 'not continued for a day');
  }
  const row = newOperation({ id, action, order, selection, by, ...(options && { options }) }, now);
  state.operations.set(id, row);
  return row;
}

/** The jobs that the operation is still to look at, in the order in which it does. */
function candidates(state: MemoryState, { action, selection, startedAt, cursor }: OperationRow, now: number): Row[] {
  const narrowed = { ...selection, state: statesToChange(action, selection) };
  return [...state.rows.values()]
    .filter((row) => wasThere(row, action, startedAt) && !row.cancelRequested)
    .filter((row) => (action === 'cancel' ? wasSelected(row, narrowed, startedAt) : isSelected(row, narrowed, now)))
    .map((row) => ({ row, position: positionOf(row) }))
    .filter(({ position }) => cursor === null || isAfter(position, cursor))
    .sort((a, b) => (isAfter(a.position, b.position) ? 1 : -1))
    .map(({ row }) => row);
}

/** By the state that it had when the operation began. */
function wasSelected(row: Row, selection: JobSelection, startedAt: number): boolean {
  if (!isSelected(row, selection, startedAt)) return false;
  if (row.lease === null || row.lease.claimedAt <= startedAt) return true;
  const { wasReady, wasLater } = runningSince(statesOf(selection));
  return row.dueAt <= startedAt ? wasReady : wasLater;
}

/** The longest dead first; of jobs that wait or run, the first enqueued. */
function positionOf(row: Row): readonly [number, number] {
  return [isTerminal(row.state) ? (row.finishedAt as number) : 0, row.accepted];
}

function isAfter(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
}

/** Whether it was there when the operation began: it neither was enqueued, nor died, nor (to run it now) started since. */
function wasThere(row: Row, action: ChangeRequest['action'], startedAt: number): boolean {
  if (row.finishedAt !== null) return row.finishedAt <= startedAt;
  const lastStart = action === 'runNow' ? (row.lease?.claimedAt ?? row.ledger.at(-1)?.startedAt ?? 0) : 0;
  return row.enqueuedAt <= startedAt && lastStart <= startedAt;
}

function apply(
  state: MemoryState,
  row: Row,
  request: ChangeRequest,
  operation: OperationRow,
  now: number,
): SkipReason | null {
  switch (request.action) {
    case 'cancel':
      cancelOne(state, row, now);
      return null;
    case 'pause':
    case 'resume':
    case 'limit':
    case 'schedule':
    case 'gate':
    case 'reveal':
    case 'retention':
      // They select no jobs.
      return null;
    case 'discard':
      remove(state, row);
      return null;
    case 'runNow':
      return runNow(state, row, nextDueAt(operation, request, now), now);
    case 'redrive': {
      const why = refusal(state, row, request, now);
      if (why === null) redrive(state, row, request, nextDueAt(operation, request, now), now);
      return why;
    }
  }
}

function nextDueAt(operation: OperationRow, { intervalMs }: ChangeRequest, now: number): number {
  const dueAt = Math.max(now, operation.nextDueAt);
  operation.nextDueAt = dueAt + intervalMs;
  return intervalMs === 0 ? now : Math.floor(dueAt);
}

function runNow(state: MemoryState, row: Row, dueAt: number, now: number): SkipReason | null {
  if (row.lease !== null) {
    row.runNowAt = Math.min(row.runNowAt ?? Number.POSITIVE_INFINITY, dueAt);
    return null;
  }
  if (dueAt >= row.dueAt) return 'due-sooner';
  state.reschedule(row, dueAt, Math.min(row.availableAt, Math.max(now, dueAt)));
  return null;
}

function refusal(state: MemoryState, row: Row, { keepAttempts }: ChangeRequest, now: number): SkipReason | null {
  const { maxAttempts, maxCrashes } = row.policy;
  if (keepAttempts && (row.attempts >= maxAttempts || row.crashes >= maxCrashes)) return 'nothing-left';
  if (!wantsKey(row)) return null;
  const holder = state.keys.holder(row.name, row.key, now);
  return holder && holder.row !== row ? 'key-taken' : null;
}

/** A key that lasts until the first start, or for a time, is given up for good; a redrive does not ask for it again. */
function wantsKey(row: Row): row is Row & { key: string } {
  return row.key !== null && row.keyLife !== 'started' && row.keyLife !== 'window';
}

function redrive(state: MemoryState, row: Row, request: ChangeRequest, dueAt: number, now: number): void {
  const again = request.keepAttempts ? {} : { attempts: 0, crashes: 0, previousDelayMs: null, spent: null };
  state.move(row, dueAt > now ? 'scheduled' : 'ready', now, {
    ...again,
    givenBack: 0,
    deferredSince: null,
    snoozes: 0,
    ...(request.payload === undefined ? {} : { payload: request.payload }),
    queue: row.homeQueue,
    lane: 'redrive',
    dueAt,
    availableAt: dueAt,
    firstStartedAt: null,
    finishedAt: null,
    deadReason: null,
  });
  if (wantsKey(row)) state.keys.take(row);
  state.errorGroups.move(row, REDRIVEN);
}
