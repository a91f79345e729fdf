import { openSync, writeSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { sleep, wall } from './measure.ts';
import type { Handler, Payload } from './peer.ts';

const WORK_MS = 20;

export interface Progress {
  /** Runs that began. */
  readonly started: number;
  /** Runs that ended, whichever way. */
  readonly runs: number;
  /** Runs that did not throw. */
  readonly completed: number;
  /** Jobs that have failed at least once. */
  readonly failedOnce: number;
  /** Jobs with `sentAt` that have started. */
  readonly timed: number;
  /** Runs that were refused. */
  readonly refused: number;
}

/** When a job `work` ran, in wall-clock ms. */
export interface Span {
  readonly n: number;
  readonly from: number;
  readonly to: number;
}

export interface Report {
  /** By number of the job: how often it started. */
  readonly started: Uint16Array;
  readonly completed: Uint16Array;
  /** Ms from enqueue to the first start, of jobs with `sentAt`. */
  readonly waits: readonly number[];
  /** The numbers of those jobs. */
  readonly waitsOf: readonly number[];
  /** Of jobs `work` that have ended. */
  readonly spans: readonly Span[];
  readonly peakRssMb: number;
  readonly loopDelayP99Ms: number;
  /** CPU time of its process since it was told to work. */
  readonly cpuMs: number;
}

export const nothing: Progress = { started: 0, runs: 0, completed: 0, failedOnce: 0, timed: 0, refused: 0 };

export interface RecorderOptions {
  /** How many numbered jobs there are. */
  readonly jobs: number;
  /** Where `work` and `poison` jobs write down what they do, so that it outlives a SIGKILL. */
  readonly log: string | null;
}

/** The handlers of the benchmark, and what they saw. One per worker process. */
export class Recorder {
  readonly #started: Uint16Array;
  readonly #completed: Uint16Array;
  readonly #waits: number[] = [];
  readonly #waitsOf: number[] = [];
  readonly #spans: Span[] = [];
  readonly #log: number | null;
  readonly #loop: ReturnType<typeof monitorEventLoopDelay> = monitorEventLoopDelay({ resolution: 1 });
  readonly #cpu = process.cpuUsage();
  #began = 0;
  #runs = 0;
  #done = 0;
  #failedOnce = 0;
  #refused = 0;

  constructor({ jobs, log }: RecorderOptions) {
    this.#started = new Uint16Array(jobs);
    this.#completed = new Uint16Array(jobs);
    this.#log = log === null ? null : openSync(log, 'a');
    this.#loop.enable();
  }

  readonly handler: Handler = (payload) => {
    const { n, kind, sentAt } = payload;
    if (kind === 'down') return this.#refuse();
    if (n < 0) return kind === 'work' ? sleep(WORK_MS) : undefined;
    const runs = ++(this.#started[n] as number);
    this.#began++;
    if (sentAt > 0 && runs === 1) {
      this.#waits.push(wall() - sentAt);
      this.#waitsOf.push(n);
    }
    switch (kind) {
      case 'noop':
      case 'call':
        return this.#complete(n);
      case 'flaky':
        return runs <= 1 ? this.#refuse() : this.#complete(n);
      case 'once':
        return runs <= 1 ? this.#fail(runs) : this.#complete(n);
      case 'twice':
        return runs <= 2 ? this.#fail(runs) : this.#complete(n);
      case 'storm':
        return this.#fail(runs);
      case 'work':
        return this.#work(payload);
      case 'poison':
        this.#write(`poison ${n}`);
        process.kill(process.pid, 'SIGKILL');
    }
  };

  progress(): Progress {
    return {
      started: this.#began,
      runs: this.#runs,
      completed: this.#done,
      failedOnce: this.#failedOnce,
      timed: this.#waits.length,
      refused: this.#refused,
    };
  }

  report(): Report {
    this.#loop.disable();
    const { user, system } = process.cpuUsage(this.#cpu);
    return {
      started: this.#started,
      completed: this.#completed,
      waits: this.#waits,
      waitsOf: this.#waitsOf,
      spans: this.#spans,
      peakRssMb: process.resourceUsage().maxRSS / 1024,
      loopDelayP99Ms: this.#loop.percentile(99) / 1e6,
      cpuMs: (user + system) / 1_000,
    };
  }

  #complete(n: number): void {
    this.#completed[n] = (this.#completed[n] as number) + 1;
    this.#runs++;
    this.#done++;
  }

  #fail(run: number): never {
    this.#runs++;
    if (run === 1) this.#failedOnce++;
    throw new Error('fails on purpose');
  }

  #refuse(): never {
    this.#runs++;
    this.#refused++;
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  }

  async #work({ n }: Payload): Promise<void> {
    const from = wall();
    this.#write(`start ${n}`);
    await sleep(WORK_MS);
    this.#write(`end ${n}`);
    this.#spans.push({ n, from, to: wall() });
    this.#complete(n);
  }

  #write(line: string): void {
    if (this.#log !== null) writeSync(this.#log, `${line}\n`);
  }
}

/** Adds up what several worker processes saw. */
export function addUp(reports: readonly Report[], jobs: number): { started: Uint16Array; completed: Uint16Array } {
  const started = new Uint16Array(jobs);
  const completed = new Uint16Array(jobs);
  for (const report of reports) {
    for (let n = 0; n < jobs; n++) {
      started[n] = (started[n] as number) + (report.started[n] ?? 0);
      completed[n] = (completed[n] as number) + (report.completed[n] ?? 0);
    }
  }
  return { started, completed };
}
