import type { Clock } from '../clock.ts';
import { forwarding } from '../store/forwarding.ts';
import type { Store } from '../store/store.ts';
import { rowOf, type VerbName, verbNames } from '../store/verbs.ts';
import { answerWithin } from './persist.ts';

/** What a worker asks of its store. */
export type WorkerStore = Pick<Store, VerbName | 'pushes' | 'onWork' | 'onJobs' | 'transactions'>;

const Forwarding = forwarding(verbNames);

/** A store whose calls fail when they are not answered in time; but for claims: the fetcher must see late answers. */
export function withTimeouts(store: Store, clock: Clock, timeoutMs: number): WorkerStore {
  const call = (verb: VerbName, args: readonly unknown[]): Promise<unknown> => {
    const answer = (store[verb] as (...all: readonly unknown[]) => Promise<unknown>)(...args);
    return rowOf(verb).isAwaited ? answer : answerWithin(clock, timeoutMs, answer);
  };
  return Object.assign(new Forwarding(call), {
    pushes: store.pushes,
    onWork: (listener: Parameters<Store['onWork']>[0]) => store.onWork(listener),
    onJobs: (listener: Parameters<Store['onJobs']>[0]) => store.onJobs(listener),
    // How long a transaction takes is the handler's choice.
    ...(store.transactions && { transactions: store.transactions }),
  });
}
