import { type BatchBounds, Batcher, type BatchRequest, boundsOfRequests, sendTogether, totalBytes } from './batch.ts';
import type { Clock } from './clock.ts';
import { StoreBusyError } from './errors.ts';
import { limitsText } from './limit/limit.ts';
import { doubling, Pauses } from './retrying.ts';
import type { Enqueued, NewJob } from './store/store.ts';

/** How long a request waits for a key that an open transaction of another process holds. */
export const KEY_PATIENCE_MS = 30_000;
const pausesForKey = doubling(50, 1_000);

interface KeyRequest extends BatchRequest<NewJob, Enqueued> {
  readonly until: number;
}

/** A key, or keys of limits, that are sent alone, and all requests for it in this process. The first is sent; the others use its answer. */
interface IsolatedKey {
  readonly identity: string;
  requests: KeyRequest[];
  busy: StoreBusyError;
  readonly pauses: Pauses;
}

/**
 * Group commit for jobs with keys, and for those that must not wait behind a full limit (`onLimit`): an enqueue of the latter
 * excludes others of the same key of the limit, as one with a key does. All that a job contends for is called its key here. A key that an open transaction of another process holds makes the store busy for all
 * jobs of the same call. They are then sent again, each key alone, so that only requests for the contested key wait:
 *
 *   together -> busy: each key is isolated -> busy again: the key is contested, and is sent after growing pauses
 *                                          -> answered: the other requests for it travel together again
 */
export class KeyedBatch {
  readonly #clock: Clock;
  readonly #bounds: BatchBounds<NewJob>;
  readonly #together: Batcher<KeyRequest, readonly Enqueued[]>;
  /** Keys that were in a call of which one is contested. */
  readonly #isolated: Batcher<IsolatedKey, readonly Enqueued[]>;
  /** Keys that were contested even when sent alone; a batcher of their own, so that they delay no other key. */
  readonly #contested: Batcher<IsolatedKey, readonly Enqueued[]>;
  readonly #byIdentity: Map<string, IsolatedKey> = new Map();

  constructor(
    send: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>,
    bounds: BatchBounds<NewJob>,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#bounds = bounds;
    const sendAll = sendTogether(send);
    this.#together = new Batcher<KeyRequest, readonly Enqueued[]>(
      sendAll,
      {
        answered: ({ resolve }, answers) => resolve(answers),
        failed: (request, error) =>
          error instanceof StoreBusyError ? this.#isolate(request, error) : request.reject(error),
      },
      boundsOfRequests(bounds),
    );
    const oneByOne = (): Batcher<IsolatedKey, readonly Enqueued[]> =>
      new Batcher(
        async ([isolated]) => {
          const { requests, busy } = isolated as IsolatedKey;
          // The request may have waited long for its turn.
          if (this.#isOver(requests[0] as KeyRequest)) throw busy;
          return sendAll(requests.slice(0, 1));
        },
        {
          answered: (isolated, answers) => this.#rejoin(isolated).resolve(answers),
          failed: (isolated, error) =>
            error instanceof StoreBusyError ? this.#tryLater(isolated, error) : this.#rejoin(isolated).reject(error),
        },
        { limit: 1 },
      );
    this.#isolated = oneByOne();
    this.#contested = oneByOne();
  }

  /** All of them contend for the same: see `contentionOf`. */
  add(items: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const until = this.#clock.monotonic() + KEY_PATIENCE_MS;
    const bytes = totalBytes(items, this.#bounds);
    return new Promise((resolve, reject) => {
      const request = { items, bytes, resolve, reject, until };
      const isolated = this.#byIdentity.get(identityOf(request));
      if (isolated === undefined) this.#together.add(request);
      else isolated.requests.push(request);
    });
  }

  #isolate(request: KeyRequest, busy: StoreBusyError): void {
    const identity = identityOf(request);
    const known = this.#byIdentity.get(identity);
    if (known !== undefined) {
      known.requests.push(request);
      return;
    }
    const pauses = new Pauses(pausesForKey, () => this.#clock.random());
    const isolated: IsolatedKey = { identity, requests: [request], busy, pauses };
    this.#byIdentity.set(identity, isolated);
    this.#isolated.add(isolated);
  }

  /** Ends the isolation of a key whose first request has its answer; returns that request. */
  #rejoin({ identity, requests }: IsolatedKey): KeyRequest {
    const [first, ...others] = requests;
    this.#byIdentity.delete(identity);
    for (const request of others) this.#together.add(request);
    return first as KeyRequest;
  }

  #tryLater(isolated: IsolatedKey, busy: StoreBusyError): void {
    const { identity, requests, pauses } = isolated;
    for (const request of requests) if (this.#isOver(request)) request.reject(busy);
    isolated.requests = requests.filter((request) => !this.#isOver(request));
    if (isolated.requests.length === 0) {
      this.#byIdentity.delete(identity);
      return;
    }
    isolated.busy = busy;
    this.#clock.after(pauses.next(), () => this.#contested.add(isolated));
  }

  #isOver({ until }: KeyRequest): boolean {
    return this.#clock.monotonic() >= until;
  }
}

function identityOf({ items }: KeyRequest): string {
  return contentionOf(items[0] as NewJob) as string;
}

/** What an open transaction of another process may keep a job from: its key, and the keys of limits that it asks. Null for nothing. */
export function contentionOf({ name, key, onLimit }: NewJob): string | null {
  if (onLimit !== undefined) return JSON.stringify([name, key, limitsText(onLimit)]);
  // Neither name nor key contains control characters.
  return key === null ? null : `${name}\n${key}`;
}
