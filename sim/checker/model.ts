import type { Spent } from '../../src/gate/index.ts';
import type { Lane } from '../../src/job.ts';
import type { Aside, DeadReason, Decision } from '../../src/retry/decision.ts';
import type { OutcomeKind } from '../../src/retry/outcome.ts';
import { rejectedKind } from '../../src/store/aside.ts';
import type { ClaimRequest, HoldTarget, NewJob } from '../../src/store/store.ts';
import { ErrorGroupModel } from './error-groups.ts';
import { GateModel } from './gates.ts';
import { LimitModel, limitsOf } from './limits.ts';

/** A job as the history says it must be. */
export interface ModelJob {
  readonly made: NewJob;
  /** The order of acceptance. */
  readonly seq: number;
  readonly acceptedAt: number;
  state: 'waiting' | 'running' | 'completed' | 'dead' | 'cancelled';
  queue: string;
  lane: Lane;
  /** Where it waits aside. */
  aside: Aside | null;
  dueAt: number;
  runs: number;
  attempts: number;
  crashes: number;
  /** Runs that were deferred or released. */
  givenBack: number;
  firstStartedAt: number | null;
  previousDelayMs: number | null;
  /** Counted failures that an outage may have cost. */
  spent: Spent | null;
  holdsKey: boolean;
  cancelRequested: boolean;
  /** When it is to run again, as was said while it runs. */
  runNowAt: number | null;
  deadReason: DeadReason | null;
  /** The limits in which it keeps its turn while it waits to run again, or will. */
  turns: readonly string[];
  lease: { readonly worker: string; readonly claimedAt: number; endsAt: number; alone: boolean } | null;
  readonly ledger: ModelRun[];
  readonly memos: Set<string>;
}

export interface ModelRun {
  readonly run: number;
  readonly attempt: number;
  readonly worker: string;
  readonly outcome: OutcomeKind;
  readonly counted: boolean;
  readonly decision: Decision;
}

/** All jobs, and the questions the checker asks about them. */
export class Model {
  readonly jobs: Map<string, ModelJob> = new Map();
  /** Until when, by target; infinity for good. */
  readonly #holds: Map<string, number> = new Map();
  /** Keys that are held until a time, whatever becomes of the job. */
  readonly #windows: Map<string, { readonly id: string; readonly until: number }> = new Map();
  readonly gates: GateModel;
  readonly limits: LimitModel = new LimitModel();
  readonly errorGroups: ErrorGroupModel = new ErrorGroupModel();
  #accepted = 0;

  constructor(gates: GateModel = new GateModel()) {
    this.gates = gates;
  }

  accept(made: NewJob, now: number): void {
    const dueAt = made.dueAt ?? now + made.delayMs;
    this.jobs.set(made.id, {
      made,
      seq: ++this.#accepted,
      acceptedAt: now,
      state: 'waiting',
      queue: made.queue,
      lane: 'fresh',
      aside: null,
      dueAt,
      runs: 0,
      attempts: 0,
      crashes: 0,
      givenBack: 0,
      firstStartedAt: null,
      previousDelayMs: null,
      spent: null,
      holdsKey: made.key !== null && made.keyLife !== 'window',
      cancelRequested: false,
      runNowAt: null,
      deadReason: null,
      turns: [],
      lease: null,
      ledger: [],
      memos: new Set(),
    });
    if (made.key !== null && made.windowMs !== undefined) {
      this.#windows.set(JSON.stringify([made.name, made.key]), { id: made.id, until: now + made.windowMs });
    }
  }

  /** The id of the job that holds the key; the job itself may be gone. */
  holder(name: string, key: string | null, now: number): string | undefined {
    if (key === null) return undefined;
    const window = this.#windows.get(JSON.stringify([name, key]));
    if (window !== undefined && window.until > now) return window.id;
    return this.all().find(({ made, holdsKey }) => holdsKey && made.name === name && made.key === key)?.made.id;
  }

  all(): ModelJob[] {
    return [...this.jobs.values()];
  }

  due(now: number): ModelJob[] {
    return this.all().filter((job) => job.state === 'waiting' && job.dueAt <= now && !this.isHeld(job, now));
  }

  hold(target: HoldTarget, until: number | null): void {
    this.#holds.set(JSON.stringify(target), until ?? Number.POSITIVE_INFINITY);
  }

  release(target: HoldTarget): void {
    this.#holds.delete(JSON.stringify(target));
  }

  isHeld({ queue, made: { resource } }: ModelJob, now: number): boolean {
    const targets: HoldTarget[] = resource === null ? [{ queue }] : [{ queue }, { resource }];
    return targets.some((target) => (this.#holds.get(JSON.stringify(target)) ?? 0) > now);
  }

  running(): ModelJob[] {
    return this.all().filter((job) => job.state === 'running');
  }

  end(job: ModelJob, state: 'completed' | 'dead' | 'cancelled'): void {
    job.state = state;
    job.lease = null;
    job.cancelRequested = false;
    job.runNowAt = null;
    if (job.made.keyLife !== 'pruned') job.holdsKey = false;
  }
}

/** Whether the worker of this claim may have this job. */
export function isFor({ aside, made: { name } }: ModelJob, { knows, avoids }: ClaimRequest): boolean {
  if (aside === null) return true;
  return (
    (knows?.get(name) ?? 0) >= aside.version &&
    !(aside.isRejected && avoids?.has(rejectedKind(name, aside.kind)) === true)
  );
}

/** Whether `a` must be served before `b`, which waits in the same queue and lane. */
export function isBefore(a: ModelJob, b: ModelJob): boolean {
  if (a.made.priority !== b.made.priority) return a.made.priority < b.made.priority;
  return sharePartition(a, b) && (a.dueAt - b.dueAt || a.seq - b.seq) < 0;
}

function sharePartition(a: ModelJob, b: ModelJob): boolean {
  const isApart = a.aside !== null || b.aside !== null;
  const byName = isApart || a.lane === 'retry' || a.lane === 'redrive';
  if (JSON.stringify(a.aside) !== JSON.stringify(b.aside)) return false;
  const isBehind = (job: ModelJob): string => (job.lane === 'suspect' ? '' : JSON.stringify(limitsOf(job)));
  if (isBehind(a) !== isBehind(b)) return false;
  return a.made.resource === b.made.resource && (!byName || a.made.name === b.made.name);
}
