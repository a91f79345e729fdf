import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { sleep, wall } from './measure.ts';
import type { Guard, OpenPeer, Peer, Servers, WorkerOptions } from './peer.ts';
import { nothing, type Progress, Recorder, type RecorderOptions, type Report } from './recorder.ts';

export interface CrewMember {
  progress(): Progress;
  /** Starts claiming; it is connected already. */
  go(): Promise<void>;
  /** Stops gracefully and answers what it saw. */
  stop(): Promise<Report>;
  /** Answers what it saw and is gone, whatever still runs. */
  dismiss(): Promise<Report>;
  /** SIGKILL, where it is a process. */
  kill(): Promise<void>;
  /** Settled once its process is gone. */
  readonly gone: Promise<unknown>;
}

export type Assignment = RecorderOptions &
  WorkerOptions & {
    /** It enqueues this many jobs itself: where the queue lives in one process, no other can. */
    readonly brings?: number;
  };

export type ToWorker =
  | {
      readonly type: 'open';
      readonly peer: string;
      readonly servers: Servers;
      readonly space: string;
      readonly guard: Guard | undefined;
    }
  | { readonly type: 'go'; readonly assignment: Assignment }
  | { readonly type: 'stop' }
  | { readonly type: 'report' };
export type FromWorker =
  | { readonly type: 'opened' | 'working' }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'report'; readonly report: Report }
  | { readonly type: 'error'; readonly message: string };

const WORKER = new URL('./worker-process.ts', import.meta.url);
const STOP_PATIENCE_MS = 30_000;

/** A worker in a process of its own. */
export class WorkerProcess implements CrewMember {
  readonly gone: Promise<unknown>;
  readonly #child: ChildProcess;
  readonly #assignment: Assignment;
  #progress: Progress = nothing;

  private constructor(child: ChildProcess, assignment: Assignment) {
    this.#child = child;
    this.#assignment = assignment;
    this.gone = once(child, 'exit');
    child.on('message', (message: FromWorker) => {
      if (message.type === 'progress') this.#progress = message.progress;
    });
  }

  static async open(
    peer: Peer,
    servers: Servers,
    space: string,
    guard: Guard | undefined,
    assignment: Assignment,
  ): Promise<WorkerProcess> {
    const child = fork(WORKER, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const worker = new WorkerProcess(child, assignment);
    const opened = worker.#answer('opened');
    worker.#send({ type: 'open', peer: peer.id, servers, space, guard });
    await opened;
    return worker;
  }

  progress(): Progress {
    return this.#progress;
  }

  async go(): Promise<void> {
    const working = this.#answer('working');
    this.#send({ type: 'go', assignment: this.#assignment });
    await working;
  }

  stop(): Promise<Report> {
    return this.#end('stop');
  }

  dismiss(): Promise<Report> {
    return this.#end('report');
  }

  async #end(type: 'stop' | 'report'): Promise<Report> {
    const answer = this.#answer('report');
    this.#send({ type });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_PATIENCE_MS);
    const { report } = (await answer) as Extract<FromWorker, { type: 'report' }>;
    clearTimeout(timer);
    await this.kill();
    return report;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.gone;
  }

  #send(message: ToWorker): void {
    this.#child.send(message);
  }

  #answer(type: FromWorker['type']): Promise<FromWorker> {
    return new Promise((resolve, reject) => {
      const onMessage = (message: FromWorker): void => {
        if (message.type !== type && message.type !== 'error') return;
        off();
        if (message.type === 'error') reject(new Error(message.message));
        else resolve(message);
      };
      const onExit = (code: number | null, signal: string | null): void => {
        off();
        reject(new Error(`a worker process ended (${signal ?? code}) before it said ${type}`));
      };
      const off = (): void => {
        this.#child.off('message', onMessage);
        this.#child.off('exit', onExit);
      };
      this.#child.on('message', onMessage);
      this.#child.on('exit', onExit);
    });
  }
}

/** A worker beside the producer, for queues that live in one process and to measure what a second one costs. */
export class WorkerHere implements CrewMember {
  readonly gone: Promise<unknown> = new Promise(() => {});
  readonly #peer: OpenPeer;
  readonly #assignment: Assignment;
  readonly #recorder: Recorder;
  #running: { stop(): Promise<void> } | undefined;

  constructor(peer: OpenPeer, assignment: Assignment) {
    this.#peer = peer;
    this.#assignment = assignment;
    this.#recorder = new Recorder(assignment);
  }

  progress(): Progress {
    return this.#recorder.progress();
  }

  async go(): Promise<void> {
    this.#running = await this.#peer.startWorker(this.#recorder.handler, this.#assignment);
  }

  async stop(): Promise<Report> {
    await this.#running?.stop();
    return this.#recorder.report();
  }

  dismiss(): Promise<Report> {
    return this.stop();
  }

  async kill(): Promise<void> {
    throw new Error('a worker in this process cannot be killed');
  }
}

/** All workers of a measurement together. */
export class Crew {
  readonly members: readonly CrewMember[];

  constructor(members: readonly CrewMember[]) {
    this.members = members;
  }

  async go(): Promise<void> {
    await Promise.all(this.members.map((member) => member.go()));
  }

  progress(): Progress {
    const all = this.members.map((member) => member.progress());
    const sum = (field: keyof Progress): number => all.reduce((total, one) => total + one[field], 0);
    return {
      started: sum('started'),
      runs: sum('runs'),
      completed: sum('completed'),
      failedOnce: sum('failedOnce'),
      timed: sum('timed'),
      refused: sum('refused'),
    };
  }

  /** Waits until `reached`, at most until `deadline` (wall-clock ms); answers whether it was. */
  async until(reached: (progress: Progress) => boolean, deadline: number): Promise<boolean> {
    while (!reached(this.progress())) {
      if (wall() >= deadline) return false;
      await sleep(2);
    }
    return true;
  }

  stop(): Promise<Report[]> {
    return Promise.all(this.members.map((member) => member.stop()));
  }

  dismiss(): Promise<Report[]> {
    return Promise.all(this.members.map((member) => member.dismiss()));
  }
}
