import { type Assignment, Crew, WorkerHere, WorkerProcess } from './crew.ts';
import { sleep, wall } from './measure.ts';
import type { Guard, Kind, OpenPeer, Payload, Peer, Servers } from './peer.ts';
import { addUp, type Report } from './recorder.ts';

export interface Workload {
  readonly id: string;
  readonly title: string;
  /** What is done and what is measured, in a sentence or two. */
  readonly what: string;
  readonly metrics: readonly Metric[];
  /** Its metrics are points on one curve per peer: how `y` grows with `x`. */
  readonly curve?: { readonly x: string; readonly y: string };
  /** The peers it is about; others do not run. */
  readonly peers?: readonly string[];
  /** No more rounds than this: what it shows is a shape, and takes long. */
  readonly mostRounds?: number;
  /** Makes its rounds itself, because what it has to prepare takes long. */
  readonly ownRounds?: boolean;
  /** Why a quick run leaves it out. */
  readonly notQuick?: string;
  run(stage: Stage): Promise<void>;
}

export interface Metric {
  readonly key: string;
  readonly title: string;
  readonly unit: '/s' | 'ms' | 's' | 'µs' | 'MB' | 'B' | 'x' | '';
  readonly better: 'higher' | 'lower' | 'neither';
  /** Its place on the x axis of a curve. */
  readonly at?: number;
}

/** The metrics of a curve. */
export function points(at: readonly number[], of: string, metric: Pick<Metric, 'unit' | 'better'>): Metric[] {
  return at.map((x) => ({ ...metric, key: String(x), title: `${of}: ${x.toLocaleString('en')}`, at: x }));
}

/** One value per measurement; most workloads make one per round. */
export type Values = Readonly<Record<string, readonly number[]>>;

export const CONCURRENCY = 100;

/** Where a workload meets a peer: one process, one round. */
export class Stage {
  readonly peer: Peer;
  readonly quick: boolean;
  readonly rounds: number;
  readonly values: Record<string, number[]> = {};
  readonly notes: string[] = [];
  readonly #servers: Servers;
  readonly #progress: (text: string) => void;
  readonly #opened: OpenPeer[] = [];
  readonly #guard: Guard | undefined;

  constructor(
    peer: Peer,
    servers: Servers,
    options: { quick: boolean; rounds: number },
    progress: (text: string) => void,
    guard?: Guard,
  ) {
    this.peer = peer;
    this.quick = options.quick;
    this.rounds = options.rounds;
    this.#servers = servers;
    this.#progress = progress;
    this.#guard = guard;
  }

  /** Another stage for the same peer, whose jobs have this guard. */
  guarded(guard: Guard | undefined): Stage {
    const { quick, rounds } = this;
    return new Stage(this.peer, this.#servers, { quick, rounds }, this.#progress, guard);
  }

  /** An empty queue. Another `part` gives another one beside it. */
  async open(part = 'main', crashSoon = false): Promise<OpenPeer> {
    const queue = await this.peer.open(this.#servers, this.#space(part), this.#guard);
    this.#opened.push(queue);
    await queue.reset(crashSoon);
    return queue;
  }

  /** Workers that are connected and wait for `go`. */
  async crew(count: number, queue: OpenPeer, assignment: Partial<Assignment> & { jobs: number }, part = 'main') {
    const whole: Assignment = { log: null, concurrency: CONCURRENCY, crashSoon: false, ...assignment };
    if (this.peer.inProcess && whole.brings === undefined) return new Crew([new WorkerHere(queue, whole)]);
    const open = (): Promise<WorkerProcess> =>
      WorkerProcess.open(this.peer, this.#servers, this.#space(part), this.#guard, whole);
    return new Crew(await Promise.all(Array.from({ length: count }, open)));
  }

  crewHere(queue: OpenPeer, assignment: Partial<Assignment> & { jobs: number }): Crew {
    return new Crew([new WorkerHere(queue, { log: null, concurrency: CONCURRENCY, crashSoon: false, ...assignment })]);
  }

  get folder(): string {
    return this.#servers.folder;
  }

  /** `full`, or `quick` in a quick run. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full;
  }

  set(key: string, value: number): void {
    this.values[key] = [...(this.values[key] ?? []), value];
  }

  note(text: string): void {
    if (!this.notes.includes(text)) this.notes.push(text);
  }

  say(text: string): void {
    this.#progress(text);
  }

  async close(): Promise<void> {
    for (const queue of this.#opened) {
      await queue.close();
      await queue.erase();
    }
  }

  #space(part: string): string {
    return `bench_${this.peer.id.replaceAll('-', '_')}_${part}`;
  }
}

export function jobs(count: number, kind: Kind = 'noop', from = 0): Payload[] {
  return Array.from({ length: count }, (_, n) => ({ n: from + n, kind, sentAt: 0 }));
}

/** Throws unless each of `count` jobs was started `times` times and completed once; after a cap, at most so often. */
export function checkRuns(reports: readonly Report[], count: number, times: number, capped: boolean): void {
  const { started, completed } = addUp(reports, count);
  for (let n = 0; n < count; n++) {
    const [runs, ends] = [started[n] as number, completed[n] as number];
    const right = capped ? runs <= times && ends <= 1 : runs === times && ends === 1;
    if (!right)
      throw new Error(`wrong: job ${n} ran ${runs} times and completed ${ends} times, expected ${times} and 1`);
  }
}

/** All handlers have ended; now wait until that is recorded, at most until `deadline` (wall-clock ms). */
export async function settled(queue: OpenPeer, deadline: number): Promise<void> {
  for (;;) {
    const { waiting, running } = await queue.counts();
    if (waiting + running === 0) return;
    if (wall() > deadline) throw new Error(`wrong: all jobs ran, but ${waiting} wait and ${running} run in the store`);
    await sleep(2);
  }
}

/** Enqueues `count` jobs at `perSecond`, evenly, fresh ones with the time they were sent; returns those times. */
export async function arrive(
  queue: OpenPeer,
  count: number,
  perSecond: number,
  { kind = 'noop', from = 0 }: { readonly kind?: Kind; readonly from?: number } = {},
): Promise<number[]> {
  const sent: number[] = [];
  const calls: Promise<void>[] = [];
  const startedAt = wall();
  for (let n = 0; n < count; n++) {
    const dueAt = startedAt + (n * 1_000) / perSecond;
    if (dueAt > wall()) await sleep(dueAt - wall());
    const sentAt = wall();
    sent.push(sentAt);
    calls.push(queue.enqueueOne({ n: from + n, kind, sentAt: kind === 'once' ? 0 : sentAt }));
  }
  await Promise.all(calls);
  return sent;
}
