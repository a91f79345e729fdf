import type { Clock } from '../clock.ts';
import type { ActiveJob } from './active-job.ts';
import type { ActiveJobs } from './active-jobs.ts';
import { Signal } from './signal.ts';

/*
 * The trial of a suspect, a job whose next crash may bury it. The aim is that it runs with no other job beside it, so that
 * a crash proves who crashed the process, and that this costs as little as possible:
 *
 *   leased -> the buffer is released -> the jobs that run end, or a third of a lease passes
 *          -> `alone: true` is recorded when nothing else runs -> the suspect starts
 *          -> it is gone, or a lease passes -> the worker goes on as usual; when it has another job to start while the suspect
 *             still runs, `alone: false` is recorded first
 *
 * The store lets one suspect of a queue run at a time, so at most one worker per queue is on trial; the others take the
 * work that this one releases. A job that the trial waited for without success is not waited for by later trials: the
 * suspect then starts beside it, and its crash proves nothing.
 *
 * `alone` is written before the fact it allows: true before the suspect's handler starts, false before any other job does.
 */

/** The part of a lease that a suspect waits for the jobs beside it. */
const WAIT_PER_LEASE = 1 / 3;

export interface TrialParts {
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly concurrency: number;
  readonly jobs: ActiveJobs;
  readonly isOnlyWorker: () => boolean;
  readonly releaseBuffer: () => void;
  /** Starts the suspect, unless its lease is over or it was cancelled meanwhile. */
  readonly start: (suspect: ActiveJob) => void;
  readonly release: (suspect: ActiveJob) => void;
  /** Writes `alone` by a heartbeat; resolves when it is written, or the lease is over. */
  readonly record: (suspect: ActiveJob, alone: boolean) => Promise<void>;
}

export class Trial {
  readonly #parts: TrialParts;
  readonly #signal: Signal;
  #underWay = false;
  #stopped = false;
  /** A suspect that was recorded as alone and has outlasted its trial. */
  #solitary: ActiveJob | null = null;
  #solitudeEnds: Promise<void> | null = null;

  constructor(parts: TrialParts) {
    this.#parts = parts;
    this.#signal = new Signal(parts.clock);
  }

  /** While it is, the worker starts no other job. */
  get underWay(): boolean {
    return this.#underWay;
  }

  /** Resolves when the worker may start other jobs again. */
  async hold(suspect: ActiveJob): Promise<void> {
    this.#underWay = true;
    try {
      await this.#hold(suspect);
    } finally {
      this.#underWay = false;
      if (suspect.state === 'buffered') this.#parts.release(suspect);
    }
  }

  /** Call it before another job starts. Null when it may start at once, else it may when this resolves. */
  endSolitude(): Promise<void> | null {
    const suspect = this.#solitary;
    if (suspect?.state !== 'running') return null;
    this.#solitudeEnds ??= this.#parts.record(suspect, false).finally(() => {
      this.#solitary = null;
      this.#solitudeEnds = null;
    });
    return this.#solitudeEnds;
  }

  /** A job ended or is gone. */
  jobChanged(): void {
    if (this.#underWay) this.#signal.notify();
  }

  stop(): void {
    this.#stopped = true;
    this.#signal.notify();
  }

  async #hold(suspect: ActiveJob): Promise<void> {
    const { jobs, isOnlyWorker, leaseMs, concurrency, releaseBuffer, start, record } = this.#parts;
    releaseBuffer();
    await this.#until(() => jobs.listRunning().every((job) => job.outlastedTrial), leaseMs * WAIT_PER_LEASE);
    for (const job of jobs.listRunning()) job.outlastedTrial = true;
    await this.#until(() => jobs.running < concurrency, Number.POSITIVE_INFINITY);
    const isAlone = jobs.running === 0 && isOnlyWorker();
    if (isAlone && !this.#stopped) await record(suspect, true);
    if (this.#stopped) return;
    start(suspect);
    await this.#until(() => suspect.state === 'gone', leaseMs);
    if (!isAlone || suspect.state !== 'running') return;
    this.#solitary = suspect;
    if (!isOnlyWorker()) await this.endSolitude();
  }

  async #until(holds: () => boolean, withinMs: number): Promise<void> {
    const { clock } = this.#parts;
    const endsAt = clock.monotonic() + withinMs;
    while (!holds() && !this.#stopped && clock.monotonic() < endsAt) {
      await this.#signal.wait(Math.min(2 ** 31 - 1, endsAt - clock.monotonic()));
    }
  }
}
