import { type Lane, lanes } from '../lane.ts';
import type { Events, FinishedEvent } from '../observe/events.ts';

export type GatePhase = 'closed' | 'open' | 'ramp' | 'held';

/** One value per step of time. Counts are of that step; backlog and gate are as they are at its end. */
export interface Series {
  readonly arrivals: readonly number[];
  readonly calls: readonly number[];
  readonly successes: readonly number[];
  readonly failures: readonly number[];
  /** Calls that are not the first of their job. */
  readonly retries: readonly number[];
  /** Failed runs that counted, less attempts that were given back in this step. */
  readonly attemptsBurnt: readonly number[];
  readonly dead: readonly number[];
  /** Jobs that wait, by lane. */
  readonly backlog: Readonly<Record<Lane, readonly number[]>>;
  /** Empty without a gate. */
  readonly gate: readonly GatePhase[];
}

const counted = ['arrivals', 'calls', 'successes', 'failures', 'retries', 'attemptsBurnt', 'dead'] as const;
type Counted = (typeof counted)[number];

interface KnownJob {
  readonly arrivedAt: number;
  lane: Lane;
  isRunning: boolean;
  /** Attempts that failed and have not been given back, as far as events tell. */
  spent: number;
}

/** Sees all that happens in a simulated fleet. Times are in ms since its beginning. */
export class Recorder {
  readonly #now: () => number;
  readonly #stepMs: number;
  readonly #jobs: Map<string, KnownJob> = new Map();
  readonly #counts: Record<Counted, number[]>;
  readonly #backlog: Record<Lane, number[]> = { fresh: [], retry: [], redrive: [], suspect: [] };
  readonly #waiting: Record<Lane, number> = { fresh: 0, retry: 0, redrive: 0, suspect: 0 };
  readonly #gate: GatePhase[] = [];
  /** Calls in each second, whatever the width of a step. */
  readonly callsPerSecond: number[] = [];
  /** From arrival to completion, in ms. */
  readonly completionTimes: number[] = [];
  readonly deadByReason: Record<string, number> = {};
  /** Runs that failed in an outage and did not count, and attempts that were given back later. */
  attemptsSpared = 0;

  constructor(now: () => number, stepMs: number) {
    this.#now = now;
    this.#stepMs = stepMs;
    this.#counts = Object.fromEntries(counted.map((what) => [what, [] as number[]])) as Record<Counted, number[]>;
  }

  /** Jobs that have neither completed nor died. */
  get left(): number {
    return this.#jobs.size;
  }

  arrived(id: string): void {
    this.#known(id);
  }

  /** A run calls the dependency. */
  called(run: number): void {
    this.#count('calls');
    if (run > 1) this.#count('retries');
    const second = Math.floor(this.#now() / 1_000);
    this.callsPerSecond[second] = (this.callsPerSecond[second] ?? 0) + 1;
  }

  answered(what: 'successes' | 'failures'): void {
    this.#count(what);
  }

  watch(events: Pick<Events, 'on'>): void {
    events.on('started', ({ id, attempt }) => this.#started(id, attempt));
    events.on('completed', ({ id }) => this.#completed(id));
    events.on('retrying', (event) => this.#retrying(event));
    events.on('released', ({ id }) => this.#waits(this.#known(id)));
    events.on('dead', ({ id, decision, reason }) => {
      if (decision.kind === 'dead' && decision.counted) this.#count('attemptsBurnt');
      this.#count('dead');
      this.deadByReason[reason] = (this.deadByReason[reason] ?? 0) + 1;
      this.#gone(id);
    });
  }

  /** Ends a step. */
  sample(gate: GatePhase | null): void {
    for (const lane of lanes) this.#backlog[lane].push(this.#waiting[lane]);
    if (gate !== null) this.#gate.push(gate);
  }

  series(): Series {
    const steps = this.#backlog.fresh.length;
    const filled = (values: number[]): number[] => Array.from({ length: steps }, (_, step) => values[step] ?? 0);
    const counts = Object.fromEntries(counted.map((what) => [what, filled(this.#counts[what])]));
    return { ...(counts as Record<Counted, number[]>), backlog: this.#backlog, gate: this.#gate };
  }

  #started(id: string, attempt: number): void {
    const job = this.#known(id);
    this.#waiting[job.lane]--;
    job.isRunning = true;
    // Attempts that an outage has cost were given back before this run.
    const refunded = job.spent - (attempt - 1);
    if (refunded === 0) return;
    this.attemptsSpared += refunded;
    this.#count('attemptsBurnt', -refunded);
    job.spent -= refunded;
  }

  #completed(id: string): void {
    this.completionTimes.push(this.#now() - this.#known(id).arrivedAt);
    this.#gone(id);
  }

  #retrying({ id, decision }: FinishedEvent): void {
    const job = this.#known(id);
    if (decision.kind === 'retry') {
      this.#count('attemptsBurnt');
      job.spent++;
    } else this.attemptsSpared++;
    this.#waits(job, 'lane' in decision ? decision.lane : job.lane);
  }

  /** A job that was claimed and handed back without a start has never stopped waiting. */
  #waits(job: KnownJob, lane: Lane = job.lane): void {
    if (!job.isRunning) return;
    job.isRunning = false;
    job.lane = lane;
    this.#waiting[lane]++;
  }

  /** One without an attempt left dies without another start. */
  #gone(id: string): void {
    const { isRunning, lane } = this.#known(id);
    if (!isRunning) this.#waiting[lane]--;
    this.#jobs.delete(id);
  }

  /** A worker may start a job before its enqueue has been answered: whichever is told first makes it known. */
  #known(id: string): KnownJob {
    const known = this.#jobs.get(id);
    if (known !== undefined) return known;
    const job: KnownJob = { arrivedAt: this.#now(), lane: 'fresh', isRunning: false, spent: 0 };
    this.#jobs.set(id, job);
    this.#waiting.fresh++;
    this.#count('arrivals');
    return job;
  }

  #count(what: Counted, by = 1): void {
    const step = Math.floor(this.#now() / this.#stepMs);
    const counts = this.#counts[what];
    counts[step] = (counts[step] ?? 0) + by;
  }
}
