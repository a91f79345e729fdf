import { isDeepStrictEqual } from 'node:util';
import { gateTitle } from './observe/gate-words.ts';
import { textOf } from './retention-options.ts';
import type {
  GateOrder,
  GateRef,
  HoldTarget,
  LimitWrite,
  RetentionWrite,
  Schedule,
  ScheduleWrite,
} from './store/store.ts';

/* What the audit says of an order, made of the arguments of the verb: the library asks for it, and a server of what remote programs send. */

function targetText(target: HoldTarget): string {
  return 'queue' in target ? `queue ${target.queue}` : `resource ${target.resource}`;
}

export function holdNote(target: HoldTarget, until: number | null): string {
  return `${targetText(target)} was paused${until === null ? '' : ` until ${new Date(until).toISOString()}`}`;
}

export function releaseNote(target: HoldTarget): string {
  return `${targetText(target)} was resumed`;
}

const gateWords: Readonly<Record<GateOrder, string>> = {
  open: 'was pinned open',
  close: 'was pinned closed',
  unpin: 'was given back to its rules',
  reset: 'was reset',
};

export function gateNote(gate: GateRef, change: GateOrder): string {
  return `${gateTitle(gate)} ${gateWords[change]}`;
}

export function limitsNote(writes: readonly LimitWrite[]): string {
  return writes
    .map(({ limit, key, settings }) => {
      const which = key === null ? `limit ${limit}` : `limit ${limit}, key ${key},`;
      return settings === null ? `${which} was reset` : `${which} was set: ${JSON.stringify(settings)}`;
    })
    .join('; ');
}

export function retentionNote(writes: readonly RetentionWrite[]): string {
  const names = [...new Set(writes.map(({ name }) => name))];
  return names
    .map((name) => {
      const which = name === null ? 'retention of all other names' : `retention of ${name}`;
      const said = writes.filter((write) => write.name === name && write.keptMs !== undefined);
      const kept = Object.fromEntries(said.map(({ state, keptMs }) => [state, keptMs as number | null]));
      return said.length === 0 ? `${which} was reset` : `${which} was set: ${textOf(kept)}`;
    })
    .join('; ');
}

/** `before` is the schedule in the version that the write names. */
export function scheduleNote(
  before: Schedule | null,
  { name, to, jobs }: Pick<ScheduleWrite, 'name' | 'to' | 'jobs'>,
): string {
  return `schedule ${name} was ${whatBecame(before, to, jobs.length > 0)}`;
}

function whatBecame(before: Schedule | null, to: Schedule | null, hasJobs: boolean): string {
  if (to === null) return 'removed';
  if (hasJobs) return 'triggered';
  const isSame = before !== null && isDeepStrictEqual({ ...before, version: '' }, { ...to, version: '' });
  if (isSame || (before !== null && before.paused !== to.paused)) return to.paused ? 'paused' : 'resumed';
  return `set: ${JSON.stringify(to.timing)}`;
}
