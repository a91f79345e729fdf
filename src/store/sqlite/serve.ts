import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Clock, Timer } from '../../clock.ts';
import type { FromThread, SentAnswer, SentError, ThreadData, ToThread } from './database-thread.ts';
import { Engine, type Result } from './engine.ts';
import { toStoreError } from './failure.ts';
import { GroupCommit } from './group-commit.ts';
import { openDatabase } from './open.ts';

/*
 * The thread that owns a database connection, so that no lock, sync or checkpoint ever holds up the event loop
 * that runs the handlers.
 */

/** How soon a commit of another process is noticed. */
const WATCH_EVERY_MS = 10;

const { path, missing } = (workerData ?? { path: '', missing: 'refuse' }) as ThreadData;
const port = parentPort as NonNullable<typeof parentPort>;

function send(message: FromThread): void {
  port.postMessage(message);
}

/** Answers and hints of one moment are sent as one message. */
class Outbox {
  #answers: SentAnswer[] = [];
  #work = false;
  #isDue = false;

  answer(id: number, result: Result): void {
    this.#answers.push({ id, result: 'error' in result ? { error: sentError(result.error) } : result });
    this.#sendSoon();
  }

  work(): void {
    this.#work = true;
    this.#sendSoon();
  }

  #sendSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#send();
      this.#answers = [];
      this.#work = false;
      this.#isDue = false;
    });
  }

  /** An answer that cannot be copied to the other thread is told to its caller alone. */
  #send(): void {
    try {
      send({ kind: 'answers', answers: this.#answers, work: this.#work });
    } catch {
      if (this.#work) send({ kind: 'answers', answers: [], work: true });
      for (const answer of this.#answers) sendAlone(answer);
    }
  }
}

function sendAlone(answer: SentAnswer): void {
  try {
    send({ kind: 'answers', answers: [answer], work: false });
  } catch (error) {
    send({ kind: 'answers', answers: [{ id: answer.id, result: { error: sentError(error) } }], work: false });
  }
}

function sentError(error: unknown): SentError {
  const { code, message } = toStoreError(error, path);
  return { code, message };
}

function watch(engine: Engine, clock: Clock, outbox: Outbox): Timer {
  let seen: number | null = null;
  let timer: Timer;
  const look = (): void => {
    timer = clock.after(WATCH_EVERY_MS, look);
    try {
      const version = engine.dataVersion();
      if (seen !== null && version !== seen) outbox.work();
      seen = version;
    } catch {
      // It is only a hint; the next call reports what is wrong.
    }
  };
  look();
  return { cancel: () => timer.cancel() };
}

async function open(clock: Clock): Promise<void> {
  const engine = new Engine(await openDatabase(path, clock, missing), path, clock);
  const outbox = new Outbox();
  const commits = new GroupCommit(engine, path, clock, () => outbox.work());
  let watching: Timer | null = null;

  const take = (message: ToThread): void => {
    switch (message.kind) {
      case 'calls':
        for (const { id, call } of message.calls) {
          commits.add({ call, answer: (result) => outbox.answer(id, result) });
        }
        return;
      case 'watch':
        watching ??= watch(engine, clock, outbox);
        return;
      case 'close':
        watching?.cancel();
        commits.close();
        port.close();
    }
  };
  port.on('message', (message: ToThread) => {
    take(message);
    // All that has arrived by now shares the transaction.
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) take(next.message);
    commits.flush();
  });
  send({ kind: 'open' });
}

/** Runs a thread's engine until the message `close` comes. */
export function serve(clock: Clock): void {
  open(clock).catch((error: unknown) => {
    send({ kind: 'refused', error: sentError(error) });
    port.close();
  });
}
