import type { Lane } from '../../src/job.ts';
import type { DeadReason, Decision } from '../../src/retry/decision.ts';
import type { OutcomeKind } from '../../src/retry/outcome.ts';
import type { NewJob } from '../../src/store/store.ts';

/** A job as the history says it must be. */
export interface ModelJob {
  readonly made: NewJob;
  /** The order of acceptance. */
  readonly seq: number;
  readonly acceptedAt: number;
  state: 'waiting' | 'running' | 'completed' | 'dead' | 'cancelled';
  queue: string;
  lane: Lane;
  dueAt: number;
  runs: number;
  attempts: number;
  crashes: number;
  firstStartedAt: number | null;
  previousDelayMs: number | null;
  holdsKey: boolean;
  cancelRequested: boolean;
  deadReason: DeadReason | null;
  lease: { readonly worker: string; readonly claimedAt: number; endsAt: number } | null;
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
  readonly paused: Set<string> = new Set();
  #accepted = 0;

  accept(made: NewJob, now: number): void {
    const dueAt = made.dueAt ?? now + made.delayMs;
    this.jobs.set(made.id, {
      made,
      seq: ++this.#accepted,
      acceptedAt: now,
      state: 'waiting',
      queue: made.queue,
      lane: 'fresh',
      dueAt,
      runs: 0,
      attempts: 0,
      crashes: 0,
      firstStartedAt: null,
      previousDelayMs: null,
      holdsKey: made.key !== null,
      cancelRequested: false,
      deadReason: null,
      lease: null,
      ledger: [],
      memos: new Set(),
    });
  }

  holder(name: string, key: string): ModelJob | undefined {
    return this.all().find(({ made, holdsKey }) => holdsKey && made.name === name && made.key === key);
  }

  all(): ModelJob[] {
    return [...this.jobs.values()];
  }

  due(now: number): ModelJob[] {
    return this.all().filter((job) => job.state === 'waiting' && job.dueAt <= now && !this.paused.has(job.queue));
  }

  running(): ModelJob[] {
    return this.all().filter((job) => job.state === 'running');
  }

  end(job: ModelJob, state: 'completed' | 'dead' | 'cancelled'): void {
    job.state = state;
    job.lease = null;
    job.cancelRequested = false;
    if (job.made.keyLife !== 'pruned') job.holdsKey = false;
  }
}

/** Who is served first inside a lane. */
export function isBefore(a: ModelJob, b: ModelJob): boolean {
  return (a.made.priority - b.made.priority || a.dueAt - b.dueAt || a.seq - b.seq) < 0;
}
