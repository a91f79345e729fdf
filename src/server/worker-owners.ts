import type { RegisteredWorker, Store, WorkerDescription } from '../store/store.ts';
import { ProblemError } from './problem.ts';
import { isAllowed, type Principal } from './security/scopes.ts';

/** So many owners are remembered, to ask the store once per worker and not with each sign of life. */
const MOST_REMEMBERED = 10_000;
/** Of one token, and of all that speak HTTP: lists of workers are read whole. */
export const MOST_WORKERS = 1_000;
/** Of a worker that reaches the store by itself. */
const NO_TOKEN = '';

export type WorkerRegistry = Pick<Store, 'register' | 'workers'>;

/** Throws when a worker is that of another token. One without a token may be taken off the list by any that may work. */
export function checkOwner(token: string | undefined, principal: Principal): void {
  if (token === undefined || token === principal.name || isAllowed(principal, [])) return;
  throw new ProblemError(403, 'FORBIDDEN', 'Expected the id of a worker of this token, got that of another one.');
}

/** A worker is listed, changed and taken off the list by the token with which it was listed first, and by operators. */
export class WorkerOwners {
  readonly #store: WorkerRegistry;
  readonly #owners: Map<string, string> = new Map();

  constructor(store: WorkerRegistry) {
    this.#store = store;
  }

  /** Answers the description with the name of the token; throws when the worker is that of another one. */
  async claim(
    id: string,
    description: WorkerDescription | null,
    principal: Principal,
  ): Promise<WorkerDescription | null> {
    const { name, isLocal } = principal;
    if (!isAllowed(principal, [])) checkOwner(await this.#ownerOf(id, description, name), principal);
    if (this.#owners.size >= MOST_REMEMBERED) this.#owners.clear();
    if (description === null) this.#owners.delete(id);
    else this.#owners.set(id, isLocal ? NO_TOKEN : name);
    return description === null || isLocal ? description : { ...description, token: name };
  }

  /** Of a worker that is not listed yet, this token, if it has room for one more. */
  async #ownerOf(id: string, description: WorkerDescription | null, token: string): Promise<string> {
    const known = this.#owners.get(id);
    if (known !== undefined) return known;
    const workers = await this.#store.workers();
    const listed = workers.find((worker) => worker.id === id);
    if (listed !== undefined) return listed.token ?? NO_TOKEN;
    if (description !== null) await this.#makeRoom(workers.filter((worker) => worker.token === token));
    return token;
  }

  /** The worker that is lost for longest leaves the list. */
  async #makeRoom(workers: readonly RegisteredWorker[]): Promise<void> {
    if (workers.length < MOST_WORKERS) return;
    const [lost] = workers.filter(({ alive }) => !alive).sort((a, b) => a.lastSeenAt - b.lastSeenAt);
    if (lost === undefined) throw tooManyWorkers();
    this.#owners.delete(lost.id);
    await this.#store.register(lost.id, null);
  }
}

function tooManyWorkers(): ProblemError {
  const text = `Expected at most ${MOST_WORKERS} workers of one token at once, got one more.`;
  return new ProblemError(429, 'TOO_MANY_WORKERS', text, { headers: { 'retry-after': '60' } });
}
