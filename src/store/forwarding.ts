import type { Store } from './store.ts';
import type { VerbName } from './verbs.ts';

/** A class whose instances have these verbs of a store, each of which hands its name and its arguments to `call`. */
export type Forwarding<Name extends VerbName> = new (
  call: (verb: Name, args: readonly unknown[]) => Promise<unknown>,
) => Pick<Store, Name>;

/** A store extends what this answers, and writes out only those of its verbs that do more. */
export function forwarding<Name extends VerbName>(names: readonly Name[]): Forwarding<Name> {
  return class {
    constructor(call: (verb: Name, args: readonly unknown[]) => Promise<unknown>) {
      for (const name of names) Object.assign(this, { [name]: (...args: unknown[]) => call(name, args) });
    }
  } as Forwarding<Name>;
}
