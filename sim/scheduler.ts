import { type Clock, idMaker, type Timer } from '../src/clock.ts';
import { Heap } from '../src/store/memory/heap.ts';
import type { Random } from './random.ts';

/** 2026-01-01T00:00:00Z, so that traces of all runs show the same times. */
export const START = 1_767_225_600_000;

interface Planned {
  at: number;
  readonly order: number;
  readonly process: SimProcess;
  readonly action: () => void;
}

/**
 * Everything that can happen, and the one place that picks what happens next: a step that is ready, or the passing of
 * time to the next one. Between two picks all promises run as far as they can. Chance decides between steps of the
 * same moment, so every interleaving can occur, and the seed brings it back.
 */
export class Scheduler {
  readonly random: Random;
  readonly #planned: Heap<Planned> = new Heap((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order));
  #now = 0;
  #picks = 0;
  #outside: Promise<unknown> = Promise.resolve();

  constructor(random: Random) {
    this.random = random;
  }

  /** Milliseconds since the run began. */
  get now(): number {
    return this.#now;
  }

  get picks(): number {
    return this.#picks;
  }

  /** Plans a step. Steps of one moment happen in an order that chance decides. */
  plan(process: SimProcess, delayMs: number, action: () => void): Timer {
    const at = this.#now + Math.max(0, delayMs || 0);
    const planned: Planned = { at, order: this.random.next(), process, action };
    this.#planned.add(planned);
    return { cancel: () => void this.#planned.remove(planned) };
  }

  /** Something outside the simulation is at work: until it is done, nothing else happens and no time passes. */
  waitFor<Result>(work: Promise<Result>): Promise<Result> {
    this.#outside = Promise.allSettled([this.#outside, work]);
    return work;
  }

  /** Runs until the time is up, nothing is left to happen, or `done` says so. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<void> {
    await this.#settle();
    for (let next = this.#planned.first(); next && next.at <= untilMs && !done(); next = this.#planned.first()) {
      this.#planned.remove(next);
      this.#now = Math.max(this.#now, next.at);
      if (!next.process.alive) continue;
      if (next.process.pausedUntil > this.#now) {
        // A stopped process does nothing, and finds it all waiting when it goes on.
        next.at = next.process.pausedUntil;
        this.#planned.add(next);
        continue;
      }
      this.#picks++;
      next.action();
      await this.#settle();
    }
    if (!done()) this.#now = Math.max(this.#now, untilMs);
  }

  /** What was answered from outside may ask for more. */
  async #settle(): Promise<void> {
    for (;;) {
      const before = this.#outside;
      await before;
      await turn();
      if (this.#outside === before) return;
    }
  }
}

/** One turn of the event loop: by then no promise callback is left. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    // biome-ignore lint/plugin: the simulator is a clock too, and this takes no virtual time
    setImmediate(resolve);
  });
}

/** Something that has a clock of its own, and can be paused or die: a worker, a producer, or the store's machine. */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  alive = true;
  /** In scheduler time. */
  pausedUntil = 0;
  /** How far its wall clock is off; it may be changed under way. */
  skewMs = 0;

  constructor(name: string, scheduler: Scheduler) {
    this.name = name;
    this.scheduler = scheduler;
    const now = (): number => Math.floor(START + scheduler.now + this.skewMs);
    this.clock = {
      now,
      monotonic: () => scheduler.now,
      random: scheduler.random.next,
      newId: idMaker(now, scheduler.random.bytes),
      after: (delayMs, action) => scheduler.plan(this, delayMs, action),
    };
  }

  /** From now on nothing of it happens: no timer fires, no answer arrives. */
  kill(): void {
    this.alive = false;
  }
}
