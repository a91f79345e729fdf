import { isList, unexpected } from '../../../config.ts';
import { ConfigError } from '../../../errors.ts';
import { doubling, type RetryingOptions, steady, withRetries } from '../../../retrying.ts';
import { causeChain, read } from '../../../untrusted/thrown.ts';
import { OUTCOME } from '../../codes.ts';
import type {
  ChangeAnswer,
  Enqueued,
  NewJob,
  RunNowInside,
  Settlement,
  TransactionClient,
  Transactions,
} from '../../store.ts';
import { RUN_NOW_INSIDE, runNowInside } from '../change.ts';
import { codeOf } from '../connection/connection-error.ts';
import { BEGIN_MARKED } from '../connection/database.ts';
import { isAway, isConflict, isPassing, isReadOnly, isReplaced, toStoreError } from '../connection/failure.ts';
import { apartByKey, ENQUEUE, enqueued, enqueueInside, type Taken } from '../enqueue.ts';
import type { Session } from '../session.ts';
import { settleThrough } from '../settle.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { withScopedClient } from './scoped-client.ts';

/** Waits until no transaction holds the row any more: a COMMIT whose answer was lost may still be under way. */
const WAIT_FOR_ROW = 'SELECT 1 FROM @.live WHERE id = $1 FOR UPDATE';
/** The lease goes on meanwhile, as long as heartbeats get through. */
const PATIENCE_MS = 30_000;

const RECORDED = `
  SELECT 1 FROM @.finished f JOIN @.workers w ON w.id = f.worker
  WHERE f.id = $1 AND f.runs = $2 AND w.name = $3 AND f.outcome = ${OUTCOME.completed}`;

/** Nothing was written, because another transaction wrote first. */
class ConflictError extends Error {
  constructor(cause: unknown) {
    super('conflict', { cause });
  }
}

const afterConflicts: RetryingOptions = {
  policy: doubling(10, 1_000),
  isTransient: (error) => error instanceof ConflictError,
  giveUpAfterMs: PATIENCE_MS,
};
const afterOutages: RetryingOptions = {
  policy: steady(250),
  isTransient: isPassing,
  giveUpAfterMs: PATIENCE_MS,
};

export interface TransactionHooks {
  /** What a transaction that enqueues notifies of when it is committed; null for nothing. */
  readonly takeNotification: () => string | null;
  readonly onSettled: (settlement: Settlement) => void;
  /** Jobs behind limits may start now that could not before. */
  readonly onRoom: () => void;
}

export class PostgresTransactions implements Transactions {
  readonly #current: () => Session;
  /** Called when the tables are other ones: too late for this transaction, but the next one finds them. */
  readonly #onReplaced: () => Promise<void>;
  readonly #hooks: TransactionHooks;
  readonly #calls: OneAtATime = new OneAtATime();

  constructor(session: () => Session, onReplaced: () => Promise<void>, hooks: TransactionHooks) {
    this.#current = session;
    this.#onReplaced = onReplaced;
    this.#hooks = hooks;
  }

  async enqueue(client: TransactionClient, jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const session = this.#current();
    const notification = this.#hooks.takeNotification();
    const send = async (values: unknown[]): Promise<Taken[]> =>
      takenOf(await this.#send('enqueue', session, client, ENQUEUE, values));
    const answers: Enqueued[] = [];
    for (const some of apartByKey(jobs)) {
      const taken = await this.#calls.run(client, () => enqueueInside(session, some, notification, send));
      answers.push(...enqueued(some, taken));
    }
    return answers;
  }

  async runNow(client: TransactionClient, order: RunNowInside): Promise<ChangeAnswer> {
    const session = this.#current();
    const notification = this.#hooks.takeNotification();
    const send = (values: unknown[]): Promise<Row[]> =>
      this.#send('jobs.runNow', session, client, RUN_NOW_INSIDE, values);
    return this.#calls.run(client, () => runNowInside(session, order, notification, send));
  }

  async #send(
    what: string,
    { db }: Session,
    client: TransactionClient,
    sql: string,
    values: unknown[],
  ): Promise<Row[]> {
    let answer: unknown;
    try {
      if (await isOutside(client)) throw outside(client, what);
      answer = await client.query(db.text(sql), values);
    } catch (error) {
      const refusal = fromServer(error);
      if (isReplaced(refusal)) await this.#onReplaced();
      throw toCallersError(refusal, db.hosts.name, what);
    }
    return rowsOf(answer, what);
  }

  /** In a transaction of a strict isolation, a heartbeat meanwhile is a conflict: then all of it is done again. */
  async settleWith<Result>(
    work: (client: TransactionClient) => Promise<Result>,
    settlement: () => Settlement,
  ): Promise<{ readonly result: Result } | null> {
    const { clock } = this.#current().db;
    try {
      return await withRetries(clock, afterConflicts, () => this.#settleOnce(work, settlement));
    } catch (error) {
      throw error instanceof ConflictError ? error.cause : error;
    }
  }

  async #settleOnce<Result>(
    work: (client: TransactionClient) => Promise<Result>,
    settlement: () => Settlement,
  ): Promise<{ readonly result: Result } | null> {
    const session = this.#current();
    const { db } = session;
    const client = await db.hosts.connect().catch((error: unknown) => {
      throw toStoreError(error, db.hosts.name);
    });
    let done: { readonly result: Result; readonly sent: Settlement } | null = null;
    let broken = false;
    try {
      await client.query(BEGIN_MARKED);
      const result = await withScopedClient(client, work);
      // Last of all, so that the row is locked for a moment only, and heartbeats go on while the work is done.
      const sent = settlement();
      const { answers, madeRoom } = await settleThrough(session, [sent], db.through(client)).catch((error: unknown) => {
        throw isConflict(error) ? new ConflictError(error) : error;
      });
      if (answers[0] !== 'settled') {
        await client.query('ROLLBACK');
        return null;
      }
      done = { result, sent };
      await client.query('COMMIT');
      session.leases.release(sent.id, sent.run);
      this.#hooks.onSettled(sent);
      if (madeRoom) this.#hooks.onRoom();
      return done;
    } catch (error) {
      // A connection that is gone, or cannot even do this, is dropped, and the server rolls back.
      broken =
        isAway(error) ||
        (await client.query('ROLLBACK').then(
          () => false,
          () => true,
        ));
      if (done !== null && isConflict(error)) throw new ConflictError(error);
      // A COMMIT whose answer was lost may have been carried out all the same.
      if (done !== null && (await this.#isRecorded(done.sent))) return done;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  #isRecorded({ id, run, worker }: Settlement): Promise<boolean> {
    const { db } = this.#current();
    return withRetries(db.clock, afterOutages, async () => {
      await db.query(WAIT_FOR_ROW, [id]);
      return (await db.query(RECORDED, [id, run, worker])).length > 0;
    });
  }
}

/** As far as the client knows: not every client says so. */
async function isOutside(client: TransactionClient): Promise<boolean> {
  const status = read(client, 'getTransactionStatus');
  const isIdle = (): boolean => typeof status === 'function' && status.call(client) === 'I';
  if (!isIdle()) return false;
  // Perhaps a BEGIN is under way that was not awaited: this is answered after it.
  await client.query('SELECT 1', []);
  return isIdle();
}

function outside(client: TransactionClient, what: string): ConfigError {
  const hint = 'That one is in none, so it would be done at once, whatever you do next. Send BEGIN first.';
  return unexpected(`${what}: tx`, 'a client inside a transaction', client, hint);
}

/** In a caller's transaction, some refusals of the server concern the caller. */
function toCallersError(error: unknown, where: string, what: string): unknown {
  if (!isReadOnly(error)) return toStoreError(error, where);
  return new ConfigError(
    `${what}: tx: expected a transaction that may write, but this one is read-only (BEGIN READ ONLY, default_transaction_read_only, or a connection to a standby); nothing was written.`,
    { cause: error },
  );
}

/** The server's own error. Libraries wrap it in errors of theirs. */
function fromServer(error: unknown): unknown {
  return causeChain(error).find((one) => /^[0-9A-Z]{5}$/.test(codeOf(one))) ?? error;
}

type Row = Readonly<Record<string, unknown>>;

function rowsOf(answer: unknown, what: string): Row[] {
  const rows = read(answer, 'rows');
  if (isList(rows)) return rows as Row[];
  const hint = 'Roll the transaction back, and give an adapter of mulligan/postgres, or a client that answers so.';
  throw unexpected(`${what}: tx`, 'query(text, values) to answer { rows }, a list', answer, hint);
}

/** The caller's client decides what a number is. */
function takenOf(rows: readonly Row[]): Taken[] {
  return rows.map(({ ord, holder, replaced }) => [Number(ord), String(holder), replaced === true]);
}
