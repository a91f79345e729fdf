import { isList, unexpected } from '../../../config.ts';
import { ConfigError, type MulliganError } from '../../../errors.ts';
import { causeChain, read } from '../../../untrusted/thrown.ts';
import type { Enqueued, NewJob, Settlement, TransactionClient, Transactions } from '../../store.ts';
import { BEGIN_MARKED } from '../connection/database.ts';
import { isAway, isConflict, isReadOnly, isReplaced, sqlState, toStoreError } from '../connection/failure.ts';
import { ENQUEUE, enqueued, enqueueValuesInside, type Taken } from '../enqueue.ts';
import type { Session } from '../session.ts';
import { settleThrough } from '../settle.ts';
import { lend } from './lend.ts';

/** Waits until nobody holds the row any more: a COMMIT whose answer was lost may still be under way. */
const UNDISPUTED = 'SELECT 1 FROM @.live WHERE id = $1 FOR UPDATE';
/** How long to ask what became of it. The lease goes on meanwhile, as long as heartbeats get through. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 250;

const RECORDED = `
  SELECT 1 FROM @.finished f JOIN @.workers w ON w.id = f.worker
  WHERE f.id = $1 AND f.runs = $2 AND w.name = $3 AND f.outcome = 0`;

/** Nothing was written, because somebody else wrote first. */
class Overtaken extends Error {
  constructor(cause: unknown) {
    super('overtaken', { cause });
  }
}

export class PostgresTransactions implements Transactions {
  readonly #current: () => Session;

  constructor(session: () => Session) {
    this.#current = session;
  }

  async enqueue(client: TransactionClient, jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const session = this.#current();
    const { db } = session;
    const values = await enqueueValuesInside(session, jobs);
    let answer: unknown;
    try {
      if (await isOutside(client)) throw outside(client);
      answer = await client.query(db.text(ENQUEUE), values);
    } catch (error) {
      const said = fromServer(error);
      // Too late for this transaction, but the next one finds its names.
      if (isReplaced(said)) db.onReturn();
      throw toCallersError(said, db.hosts.name);
    }
    return enqueued(jobs, takenOf(answer));
  }

  /** In a transaction of a strict isolation, a heartbeat that came meanwhile is a conflict: then all is done again. */
  async settleWith<Result>(
    work: (client: TransactionClient) => Promise<Result>,
    settlement: () => Settlement,
  ): Promise<{ readonly result: Result } | null> {
    const { clock } = this.#current().db;
    const patientUntil = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.#settleOnce(work, settlement);
      } catch (error) {
        if (!(error instanceof Overtaken)) throw error;
        if (clock.monotonic() >= patientUntil) throw error.cause;
      }
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
      const result = await lend(client, work);
      // Last of all, so that the row is locked for a moment only, and heartbeats go on while the work is done.
      const sent = settlement();
      const [answer] = await settleThrough(session, [sent], db.through(client)).catch((error: unknown) => {
        throw isConflict(error) ? new Overtaken(error) : error;
      });
      if (answer !== 'settled') {
        await client.query('ROLLBACK');
        return null;
      }
      done = { result, sent };
      await client.query('COMMIT');
      session.leases.release(sent.id, sent.run);
      return done;
    } catch (error) {
      // A connection that is gone, or cannot even do this, is dropped, and the server rolls back.
      broken =
        isAway(error) ||
        (await client.query('ROLLBACK').then(
          () => false,
          () => true,
        ));
      if (done !== null && isConflict(error)) throw new Overtaken(error);
      // A COMMIT whose answer was lost may have been carried out all the same.
      if (done !== null && (await this.#isRecorded(done.sent))) return done;
      throw error;
    } finally {
      client.release(broken);
    }
  }

  async #isRecorded({ id, run, worker }: Settlement): Promise<boolean> {
    const { db } = this.#current();
    const patientUntil = db.clock.monotonic() + PATIENCE_MS;
    for (;;) {
      try {
        await db.query(UNDISPUTED, [id]);
        return (await db.query(RECORDED, [id, run, worker])).length > 0;
      } catch (error) {
        if (db.clock.monotonic() >= patientUntil) throw error;
        await db.pause(PAUSE_MS);
      }
    }
  }
}

/** As far as the client knows: not every one tells. */
async function isOutside(client: TransactionClient): Promise<boolean> {
  const status = read(client, 'getTransactionStatus');
  const isIdle = (): boolean => typeof status === 'function' && status.call(client) === 'I';
  if (!isIdle()) return false;
  // Perhaps a BEGIN is under way that nobody has waited for: this is answered after it.
  await client.query('SELECT 1', []);
  return isIdle();
}

function outside(client: TransactionClient): ConfigError {
  const hint = 'That one is in none, so the job would be stored at once, whatever you do next. Send BEGIN first.';
  return unexpected('enqueue: tx', 'a client inside a transaction', client, hint);
}

/** In a caller's transaction, some of what the server says is about the caller. */
function toCallersError(error: unknown, where: string): MulliganError {
  if (!isReadOnly(error)) return toStoreError(error, where);
  return new ConfigError(
    'enqueue: tx: expected a transaction that may write, but this one is read-only (BEGIN READ ONLY, default_transaction_read_only, or a connection to a standby); nothing was enqueued.',
    { cause: error },
  );
}

/** What the server said. Libraries wrap it in errors of their own. */
function fromServer(error: unknown): unknown {
  return causeChain(error).find((one) => /^[0-9A-Z]{5}$/.test(sqlState(one))) ?? error;
}

/** The caller's client has its own ideas of what a row and a number are. */
function takenOf(answer: unknown): Taken[] {
  const rows = read(answer, 'rows');
  if (!isList(rows)) {
    const hint = 'Roll the transaction back, and give an adapter of mulligan/postgres, or a client that answers so.';
    throw unexpected('enqueue: tx', 'query(text, values) to answer { rows }, a list', answer, hint);
  }
  return (rows as readonly { ord: unknown; holder: string }[]).map(({ ord, holder }) => [Number(ord), holder]);
}
