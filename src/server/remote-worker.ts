import type { WorkerDescription } from '../store/store.ts';

/** What a claim tells of the worker that sends it. */
export interface ClaimFacts {
  readonly queues: readonly string[];
  /** Null when it takes jobs of any name. */
  readonly names: readonly string[] | null;
  readonly limit: number;
  readonly leaseMs: number;
  readonly host: string;
  readonly version: string | null;
  readonly agent: string | null;
  /** The name of its token; left out where the server has none. */
  readonly token?: string;
}

/** So many characters of queues, and of names, are kept of a worker: what clients send must not fill the store. */
const LONGEST_LIST = 10_000;

/** What was claimed between two registrations. */
class Claimed {
  readonly queues: Set<string> = new Set();
  readonly names: Set<string> = new Set();
  takesAll = false;

  add({ queues, names }: ClaimFacts): void {
    for (const queue of queues) this.queues.add(queue);
    for (const name of names ?? []) this.names.add(name);
    if (names === null) this.takesAll = true;
  }
}

/** A worker that speaks HTTP, as its server knows it. */
export class RemoteWorker {
  readonly id: string;
  /** Of its first claim: another program may claim under this name, and does not become its owner. */
  readonly token: string | undefined;
  /** `refused`: there was no room, or another worker has the name. */
  place: 'new' | 'refused' | 'listed' = 'new';
  /** A worker may ask for its queues one by one, so what it takes is what its last claims named together. */
  #claimed: readonly [before: Claimed, since: Claimed] = [new Claimed(), new Claimed()];
  #facts: ClaimFacts;
  #waiting = 0;
  #heardAt = 0;
  #isHeard = false;

  constructor(id: string, facts: ClaimFacts) {
    this.id = id;
    this.token = facts.token;
    this.#facts = facts;
  }

  /** Whether there was a sign of it since it was described last. */
  get isSeen(): boolean {
    return this.#isHeard || this.#waiting > 0;
  }

  isLost(since: number): boolean {
    return this.#waiting === 0 && this.#heardAt <= since;
  }

  claims(facts: ClaimFacts, now: number): void {
    this.#facts = facts;
    this.#claimed[1].add(facts);
    this.#waiting++;
    this.heard(now);
  }

  claimed(now: number): void {
    this.#waiting--;
    this.heard(now);
  }

  heard(now: number): void {
    this.#heardAt = now;
    this.#isHeard = true;
  }

  describe(): WorkerDescription {
    const { host, version, agent, limit, leaseMs } = this.#facts;
    const [before, since] = this.#claimed;
    // One that only waits, or renews leases, takes what it took before.
    if (since.queues.size > 0) this.#claimed = [since, new Claimed()];
    this.#isHeard = false;
    return {
      ...{ name: null, version, mulligan: null, host, pid: null, concurrency: limit },
      queues: bounded([...before.queues, ...since.queues]),
      jobs: bounded([...before.names, ...since.names]),
      ...{ running: null, leaseMs, loopDelayMs: null },
      http: { agent, takesAll: before.takesAll || since.takesAll },
      ...(this.token !== undefined && { token: this.token }),
    };
  }
}

function bounded(texts: readonly string[]): string[] {
  const kept: string[] = [];
  let length = 0;
  for (const text of new Set(texts)) {
    length += text.length;
    if (length > LONGEST_LIST) break;
    kept.push(text);
  }
  return kept.sort();
}
