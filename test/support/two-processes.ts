import { type Clock, systemClock } from '../../src/clock.ts';
import { complete, settlement, startOne } from '../../src/store/conformance/builders.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import { LatePool, type OpenTransaction } from './late-pool.ts';
import { movableTime, newSchema, runSql } from './postgres-schema.ts';

export interface Begun<Answer> extends OpenTransaction {
  readonly answer: Promise<Answer>;
}

/** Two processes on one schema: one commits when the test says so, the other at once. */
export class Two implements AsyncDisposable {
  readonly schema: string = newSchema();
  readonly #url: string;
  readonly #latePool: LatePool;
  readonly #otherPool: LatePool;
  late!: Store;
  other!: Store;

  private constructor(url: string) {
    this.#url = url;
    this.#latePool = new LatePool(url);
    this.#otherPool = new LatePool(url);
  }

  static async open(url: string, clock: Clock = systemClock): Promise<Two> {
    const two = new Two(url);
    const { schema } = two;
    two.late = await PostgresStore.open({ pool: two.#latePool, schema, wakeUps: false, clock });
    two.other = await PostgresStore.open({ pool: two.#otherPool, schema, wakeUps: false, clock });
    await movableTime(url, schema);
    // Both know the strings and partitions that most tests use, so that a verb is one statement.
    for (const store of [two.late, two.other]) {
      for (const key of [null, 'known']) await store.settle([settlement(await startOne(store, { key }), complete)]);
    }
    return two;
  }

  /** Carries out a call of the late process up to its COMMIT. `text` is a part of the statement to stop after. */
  begin<Answer>(text: RegExp, call: (store: Store) => Promise<Answer>): Promise<Begun<Answer>> {
    return this.#stop(text, this.#latePool.keepOpen(text), call);
  }

  /** Begins the transaction of a call with this lock on a table, and stops before its statement. */
  lockFirst<Answer>(text: RegExp, table: string, call: (store: Store) => Promise<Answer>): Promise<Begun<Answer>> {
    const lock = `LOCK TABLE ${this.schema}.${table} IN ACCESS EXCLUSIVE MODE`;
    return this.#stop(text, this.#latePool.lockFirst(text, lock), call);
  }

  async #stop<Answer>(
    text: RegExp,
    reached: Promise<OpenTransaction>,
    call: (store: Store) => Promise<Answer>,
  ): Promise<Begun<Answer>> {
    const answer = call(this.late);
    answer.catch(() => {});
    const open = await Promise.race([reached, answer.then(() => null)]);
    if (open === null) throw new Error(`expected a statement like ${text}, got none.`);
    return { commit: open.commit, answer };
  }

  /** Commits as soon as the other process waits for a lock, and answers what its call then says. */
  async commitWhenBlocked<Answer>(open: OpenTransaction, call: (store: Store) => Promise<Answer>): Promise<Answer> {
    const answer = call(this.other);
    answer.catch(() => {});
    const waits = await this.#otherPool.waitsForLock(answer);
    open.commit();
    if (!waits) throw new Error(`expected the call to wait for a lock, got ${JSON.stringify(await answer)} at once.`);
    return answer;
  }

  async advance(ms: number): Promise<void> {
    await runSql(this.#url, `UPDATE ${this.schema}.test_time SET shift = shift + $1`, [ms]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.late.close(), this.other.close()]);
    await this.#latePool[Symbol.asyncDispose]();
    await this.#otherPool[Symbol.asyncDispose]();
    await runSql(this.#url, `DROP SCHEMA ${this.schema} CASCADE`);
  }
}
