import { parseDuration } from '../duration.ts';
import type { MulliganParts } from '../mulligan.ts';
import { Chore } from '../worker/chores.ts';
import { UNKNOWN_JOB_TIMEOUT } from '../worker/options.ts';
import { rescue } from '../worker/rescue.ts';
import { SPREAD_MS, Ticker } from '../worker/schedules.ts';
import { Trouble } from '../worker/trouble.ts';

const RESCUE_EVERY_MS = 3_000;
const PRUNE_EVERY_MS = 30_000;
const PRUNE_BATCH = 500;
const ROLL_UP_EVERY_MS = 15_000;
const POLL_SCHEDULES_MS = 1_000;

/**
 * What every worker in TypeScript does beside its jobs, and workers that speak HTTP cannot: rescue jobs whose lease expired,
 * delete what outlived its retention, add up the history, fire schedules. Any number of processes may do so at once.
 */
export class Chores {
  readonly #chores: readonly Chore[];
  readonly #ticker: Ticker;
  readonly #unsubscribe: () => void;
  #isStopping = false;

  constructor({ store, clock, report, log }: MulliganParts) {
    const trouble = new Trouble(log);
    const onError = (error: unknown): void => trouble.failed(error);
    const asideMs = parseDuration(UNKNOWN_JOB_TIMEOUT, 'unknownJobTimeout');
    const rescueAll = (): Promise<void> =>
      rescue(store, clock, ({ job, settlement, answer }) => report.rescued(job, settlement, answer));
    const prune = async (): Promise<void> => {
      while (!this.#isStopping && !(await store.prune(PRUNE_BATCH, asideMs)).isDone);
    };
    const rollUp = async (): Promise<void> => {
      while (!this.#isStopping && !(await store.rollUp()).isDone);
    };
    this.#chores = [
      new Chore(clock, RESCUE_EVERY_MS, rescueAll, onError),
      new Chore(clock, PRUNE_EVERY_MS, prune, onError),
      new Chore(clock, ROLL_UP_EVERY_MS, rollUp, onError),
    ];
    this.#ticker = new Ticker({
      store,
      clock,
      pollMs: POLL_SCHEDULES_MS,
      spreadMs: store.kind === 'memory' ? 0 : SPREAD_MS,
      log,
      onEnqueued: (job, answer) => report.enqueued(job, answer),
      onError,
    });
    this.#unsubscribe = store.onWork(() => this.#ticker.wake());
    for (const chore of this.#chores) chore.start();
    this.#ticker.start();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#unsubscribe();
    await Promise.all([this.#ticker.stop(), ...this.#chores.map((chore) => chore.stop())]);
  }
}
