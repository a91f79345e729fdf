import { orderRow } from '../orders.ts';
import type { Order, Schedule, ScheduleFilter, Schedules, ScheduleWrite, ScheduleWritten } from '../store.ts';
import { enqueue } from './enqueue.ts';
import { record } from './operations.ts';
import type { MemoryState } from './state.ts';

export function schedules(state: MemoryState, filter: ScheduleFilter, now: number): Schedules {
  const { names, soonest = false, limit, after = '' } = filter;
  const wanted = names && new Set(names);
  const byName = [...state.schedules.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const found = soonest
    ? byName.filter(hasNext).sort((a, b) => a.nextAt - b.nextAt)
    : byName.filter(({ name }) => name > after && (wanted === undefined || wanted.has(name)));
  return { now, schedules: found.slice(0, limit) };
}

function hasNext(schedule: Schedule): schedule is Schedule & { nextAt: number } {
  return schedule.nextAt !== null;
}

export function writeSchedule(
  state: MemoryState,
  { name, from, to, jobs }: ScheduleWrite,
  now: number,
  order: Order | undefined,
): ScheduleWritten {
  const version = state.schedules.get(name)?.version ?? null;
  // Already in the new version: the answer to this very write was lost.
  if (version !== from && version !== (to?.version ?? null)) return { written: false, jobs: [] };
  if (to === null) state.schedules.delete(name);
  // As JSON would keep it, and apart from the caller's object.
  else state.schedules.set(name, structuredClone(to));
  if (order) record(state, orderRow(order, 'schedule'), now);
  // A worker sleeps until the next tick it knows of.
  state.wake.hint();
  return { written: true, jobs: enqueue(state, jobs, now) };
}
