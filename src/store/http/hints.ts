import type { IncomingMessage } from 'node:http';
import { type Clock, nextTurn } from '../../clock.ts';
import { doubling, Pauses, pause } from '../../retrying.ts';
import { JobsListeners } from '../jobs-listeners.ts';
import { Wake } from '../memory/wake.ts';
import type { JobsListener, Unsubscribe } from '../store.ts';
import type { Transport } from './transport.ts';
import { HINTS, STORE_PATH } from './verbs.ts';

/*
 * What `onWork` and `onJobs` of the server's store tell, through one stream of events for all listeners of this process.
 *
 *   closed -> connecting     with the first listener
 *   connecting -> open       listeners of `onWork` are called: something may have happened before
 *   open -> connecting       when the stream breaks, after a pause; when it is open again, listeners of `onJobs` are told that they
 *                            may have missed something
 *   any -> closed            without listeners, and when the store closes
 *
 * Hints may be lost while it connects; callers poll besides, as with every store.
 */
export class Hints {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #wake: Wake = new Wake();
  readonly #jobs: JobsListeners = new JobsListeners();
  readonly #pauses: Pauses;
  #listeners = 0;
  #stream: AbortController | null = null;
  /** Resolves when the stream was opened, or has failed to, for the first time. */
  #opened: Promise<void> = Promise.resolve();

  constructor(transport: Transport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
    this.#pauses = new Pauses(doubling(100, 5_000), () => clock.random());
  }

  /** Calls wait for this, so that what they cause is heard of. */
  get opened(): Promise<void> {
    return this.#opened;
  }

  onWork(listener: () => void): Unsubscribe {
    return this.#listen(this.#wake.listen(listener));
  }

  onJobs(listener: JobsListener): Unsubscribe {
    return this.#listen(this.#jobs.add(listener));
  }

  close(): void {
    this.#wake.stop();
    this.#jobs.clear();
    this.#end();
  }

  #listen(remove: Unsubscribe): Unsubscribe {
    this.#listeners++;
    if (this.#stream === null) this.#begin();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      remove();
      if (--this.#listeners === 0) this.#end();
    };
  }

  #begin(): void {
    const stream = new AbortController();
    this.#stream = stream;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#opened = promise;
    void this.#run(stream.signal, resolve);
  }

  #end(): void {
    this.#stream?.abort();
    this.#stream = null;
  }

  async #run(signal: AbortSignal, onOpened: () => void): Promise<void> {
    let isFirst = true;
    while (!signal.aborted) {
      try {
        const response = await this.#transport.stream(`${STORE_PATH}/${HINTS}`, signal);
        this.#pauses.reset();
        onOpened();
        this.#wake.hint();
        if (!isFirst) this.#jobs.missed();
        isFirst = false;
        await this.#read(response);
        await nextTurn(this.#clock);
      } catch {
        // The next call of a verb reports what is wrong; here it only means to try again.
        onOpened();
        await pause(this.#clock, this.#pauses.next(), signal);
      }
    }
    onOpened();
  }

  async #read(response: IncomingMessage): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const part of response as AsyncIterable<Uint8Array>) {
      const blocks = (rest + decoder.decode(part, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) this.#tell(block);
    }
  }

  #tell(block: string): void {
    const [, event] = /^event: (.*)$/m.exec(block) ?? [];
    const [, data = '[]'] = /^data: (.*)$/m.exec(block) ?? [];
    if (event === 'work') this.#wake.hint();
    if (event === 'ended') this.#jobs.ended(JSON.parse(data) as string[]);
    if (event === 'missed') this.#jobs.missed();
    if (event === 'cancelling') this.#jobs.cancelling(JSON.parse(data) as string[]);
  }
}
