/**
 * Calls that share a key run one after the other, in the order they were made; one that fails does not stop the next.
 *
 * A connection carries one query at a time. `pg` queues queries that come meanwhile, but warns that it will not for long:
 * so several enqueues into one transaction at once wait here.
 */
export class OneAtATime {
  readonly #last: WeakMap<object, Promise<unknown>> = new WeakMap();

  run<Result>(key: object, call: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    const result = before === undefined ? call() : before.then(call, call);
    this.#last.set(key, result);
    const forget = (): void => {
      if (this.#last.get(key) === result) this.#last.delete(key);
    };
    result.then(forget, forget);
    return result;
  }
}
