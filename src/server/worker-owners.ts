import type { Store, WorkerDescription } from '../store/store.ts';
import { ProblemError } from './problem.ts';
import { isAllowed, type Principal } from './security/scopes.ts';

/** So many owners are remembered, to ask the store once per worker and not with each sign of life. */
const MOST_REMEMBERED = 10_000;
/** Of a worker that reaches the store by itself. */
const NO_TOKEN = '';

/** Throws when a worker is that of another token. One without a token may be taken off the list by any that may work. */
export function checkOwner(token: string | undefined, principal: Principal): void {
  if (token === undefined || token === principal.name || isAllowed(principal, [])) return;
  throw new ProblemError(403, 'FORBIDDEN', 'Expected the id of a worker of this token, got that of another one.');
}

/** A worker is listed, changed and taken off the list by the token with which it was listed first, and by operators. */
export class WorkerOwners {
  readonly #store: Pick<Store, 'workers'>;
  readonly #owners: Map<string, string> = new Map();

  constructor(store: Pick<Store, 'workers'>) {
    this.#store = store;
  }

  /** Answers the description with the name of the token; throws when the worker is that of another one. */
  async claim(
    id: string,
    description: WorkerDescription | null,
    principal: Principal,
  ): Promise<WorkerDescription | null> {
    const { name, isLocal } = principal;
    if (!isAllowed(principal, [])) checkOwner((await this.#ownerOf(id)) ?? name, principal);
    if (this.#owners.size >= MOST_REMEMBERED) this.#owners.clear();
    if (description === null) this.#owners.delete(id);
    else this.#owners.set(id, isLocal ? NO_TOKEN : name);
    return description === null || isLocal ? description : { ...description, token: name };
  }

  async #ownerOf(id: string): Promise<string | null> {
    const known = this.#owners.get(id);
    if (known !== undefined) return known;
    const listed = (await this.#store.workers()).find((worker) => worker.id === id);
    return listed === undefined ? null : (listed.token ?? NO_TOKEN);
  }
}
