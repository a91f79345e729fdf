import type { Clock, Timer } from '../clock.ts';
import { partsOf } from '../parts.ts';
import { LOST_AFTER_MS, type RegisteredWorker, SEEN_EVERY_MS } from '../store/store.ts';
import { type ClaimFacts, RemoteWorker } from './remote-worker.ts';
import type { Principal } from './security/scopes.ts';
import { checkOwner, MOST_WORKERS, type WorkerRegistry } from './worker-owners.ts';

/*
 * Workers that speak HTTP do not register. The server does it for them: at their first claim, and then as often as others do,
 * while they claim, wait for jobs, renew leases or settle. Requests only leave a mark here, so none of them waits for a write.
 *
 * The names come from clients. So there are at most `MOST_WORKERS` of them, in all servers of a store (but for those that admit workers at the same instant); one that a worker of another
 * kind has is not taken over; when there is no room, those that were lost make it, and a worker that finds none is not listed.
 */

/** Stores commit concurrent calls together. */
const AT_ONCE = 50;

export class RemoteWorkers {
  readonly #store: WorkerRegistry;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #workers: Map<string, RemoteWorker> = new Map();
  #timer: Timer | null = null;
  #underWay: Promise<void> | null = null;
  #closed = false;

  constructor(store: WorkerRegistry, clock: Clock, onError: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** A worker claims: it lives until `claim` settles, however long it waits. */
  async during<T>(id: string, facts: ClaimFacts, claim: () => Promise<T>): Promise<T> {
    const worker = this.#workers.get(id) ?? this.#add(id, facts);
    worker?.claims(facts, this.#clock.monotonic());
    try {
      return await claim();
    } finally {
      worker?.claimed(this.#clock.monotonic());
    }
  }

  /** A worker renews a lease, or settles. One that this server does not know has claimed from another, which registers it. */
  heard(id: string): void {
    this.#workers.get(id)?.heard(this.#clock.monotonic());
  }

  /** False when no worker that speaks HTTP is registered under this name. Throws when it is that of another token. */
  async stopped(id: string, principal: Principal): Promise<boolean> {
    checkOwner(this.#workers.get(id)?.token, principal);
    this.#workers.delete(id);
    await this.#underWay;
    const listed = (await this.#store.workers()).find((one) => one.id === id);
    if (listed === undefined || listed.http === null) return false;
    checkOwner(listed.token, principal);
    await this.#store.register(id, null);
    return true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#underWay;
  }

  #add(id: string, facts: ClaimFacts): RemoteWorker | null {
    if (this.#workers.size >= MOST_WORKERS || this.#closed) return null;
    const worker = new RemoteWorker(id, facts);
    this.#workers.set(id, worker);
    if (this.#underWay === null) this.#tendAfter(0);
    return worker;
  }

  #tendAfter(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(delayMs, () => {
      this.#underWay = this.#tend()
        .catch(this.#onError)
        .finally(() => {
          this.#underWay = null;
          this.#tendAgain();
        });
    });
  }

  #tendAgain(): void {
    if (this.#workers.size === 0 || this.#closed) return;
    const isNew = [...this.#workers.values()].some(({ place }) => place === 'new');
    this.#tendAfter(isNew ? 0 : SEEN_EVERY_MS);
  }

  async #tend(): Promise<void> {
    const lostSince = this.#clock.monotonic() - LOST_AFTER_MS;
    for (const [id, worker] of this.#workers) if (worker.isLost(lostSince)) this.#workers.delete(id);
    const seen = [...this.#workers.values()].filter(({ isSeen }) => isSeen);
    const unlisted = seen.filter(({ place }) => place !== 'listed');
    // Before anything can fail, so that a store that is away is not asked again at once.
    for (const worker of unlisted) worker.place = 'refused';
    if (unlisted.length > 0) await this.#admit(unlisted);
    const listed = seen.filter(({ place }) => place === 'listed');
    for (const part of partsOf(listed, { limit: AT_ONCE })) {
      await Promise.all(part.map((worker) => this.#store.register(worker.id, worker.describe())));
    }
  }

  async #admit(workers: readonly RemoteWorker[]): Promise<void> {
    const listed = await this.#store.workers();
    const remote = new Set(listed.filter(({ http }) => http !== null).map(({ id }) => id));
    const others = new Set(listed.filter(({ http, alive }) => http === null && alive).map(({ id }) => id));
    const free = workers.filter(({ id }) => !others.has(id));
    let room = MOST_WORKERS - remote.size;
    room += await this.#makeRoom(free.filter(({ id }) => !remote.has(id)).length - room, listed);
    for (const worker of free) {
      if (remote.has(worker.id)) worker.place = 'listed';
      else if (room > 0) {
        worker.place = 'listed';
        room--;
      }
    }
  }

  /** Removes workers that are lost, the longest lost first; answers how many. */
  async #makeRoom(wanted: number, listed: readonly RegisteredWorker[]): Promise<number> {
    if (wanted <= 0) return 0;
    const lost = listed
      .filter(({ id, http, alive }) => http !== null && !alive && !this.#workers.has(id))
      .sort((a, b) => a.lastSeenAt - b.lastSeenAt)
      .slice(0, wanted);
    for (const { id } of lost) await this.#store.register(id, null);
    return lost.length;
  }
}
