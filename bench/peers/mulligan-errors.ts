import type { Settlement, Store } from '../../dist/store/store.js';
import { toStoredError } from '../../dist/untrusted/stored-error.js';
import { pruneWith } from '../../src/store/conformance/builders.ts';
import { wall } from '../harness/measure.ts';
import type { Grouped } from '../harness/peer.ts';
import { claimKept, enqueueMany, type Place } from './mulligan.ts';
import type { Filled } from './mulligan-gates.ts';

/* Dead jobs of Mulligan's stores, by the settlements that a worker would have sent. */

const AT_ONCE = 1_000;
const KINDS = 12;

export class MulliganErrors implements Grouped {
  readonly #place: Place;
  readonly #store: Store;
  readonly #filled: Filled;

  constructor(place: Place, store: Store, filled: Filled) {
    this.#place = place;
    this.#store = store;
    this.#filled = filled;
  }

  bury(jobs: number): Promise<void> {
    return this.#filled(async (store) => {
      for (let done = 0; done < jobs; done += AT_ONCE) {
        const count = Math.min(AT_ONCE, jobs - done);
        await enqueueMany(store, count, () => ({ kind: 'noop', resource: null }));
        const { jobs: claimed } = await claimKept(store, count);
        const settlements = claimed.map(({ id, run, worker, claimedAt }, index): Settlement => {
          const decision = { kind: 'dead', reason: 'exhausted', counted: true, rule: 'default' } as const;
          const error = toStoredError(failure((done + index) % KINDS, done + index));
          return { id, run, worker, outcome: 'failed', decision, error, startedAt: claimedAt, endedAt: claimedAt };
        });
        const answers = await store.settle(settlements);
        if (answers.some((answer) => answer !== 'settled')) throw new Error('wrong: a job could not be settled');
      }
    });
  }

  async list(jobs: number): Promise<number> {
    const startedAt = wall();
    const groups = await this.#store.errorGroups({ limit: 50 });
    const tookMs = wall() - startedAt;
    const dead = groups.reduce((sum, group) => sum + group.dead, 0);
    if (groups.length !== KINDS || dead !== jobs)
      throw new Error(`wrong: ${groups.length} groups of ${dead} jobs, expected ${KINDS} of ${jobs}`);
    return tookMs;
  }

  async addUp(): Promise<void> {
    await pruneWith(this.#store, { completedMs: null, deadMs: null, cancelledMs: null }, 1);
  }

  async count(jobs: number): Promise<number> {
    const startedAt = wall();
    const counted = await this.#place.rows([this.#store.kind === 'sqlite' ? 'jobs' : 'finished']);
    const tookMs = wall() - startedAt;
    if (!Object.values(counted).includes(jobs)) throw new Error(`wrong: the table has ${JSON.stringify(counted)} rows`);
    return tookMs;
  }
}

/** Of one kind, whatever the number. */
function failure(kind: number, n: number): Error {
  const error = new Error(`order ${n} of customer-${n * 7} failed at https://api.example.com/${n}`);
  return Object.assign(error, {
    code: `E_KIND_${kind}`,
    stack: `Error\n    at handler${kind} (/app/src/jobs.ts:${kind}:1)`,
  });
}
