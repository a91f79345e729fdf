import type { Clock } from '../clock.ts';
import type { Store } from '../store/store.ts';
import { answerWithin } from './persist.ts';

/** What a worker asks of its store. */
export type WorkerStore = Pick<
  Store,
  | 'claim'
  | 'claimGated'
  | 'claimLimited'
  | 'permit'
  | 'report'
  | 'heartbeat'
  | 'settle'
  | 'expired'
  | 'remember'
  | 'recall'
  | 'runs'
  | 'cancelRequested'
  | 'pushes'
  | 'prune'
  | 'schedules'
  | 'writeSchedule'
  | 'register'
  | 'rollUp'
  | 'onWork'
  | 'onJobs'
  | 'transactions'
>;

/** A store whose calls fail when they are not answered in time. Claims have no limit here: the fetcher must see late answers. */
export function withTimeouts(store: Store, clock: Clock, timeoutMs: number): WorkerStore {
  const within = <Answer>(call: Promise<Answer>): Promise<Answer> => answerWithin(clock, timeoutMs, call);
  return {
    claim: (request) => store.claim(request),
    claimGated: (request) => store.claimGated(request),
    claimLimited: (request) => store.claimLimited(request),
    permit: (request) => within(store.permit(request)),
    report: (reports) => within(store.report(reports)),
    heartbeat: (heartbeats) => within(store.heartbeat(heartbeats)),
    settle: (settlements) => within(store.settle(settlements)),
    expired: (limit) => within(store.expired(limit)),
    remember: (fence, key, value) => within(store.remember(fence, key, value)),
    recall: (id) => within(store.recall(id)),
    runs: (id) => within(store.runs(id)),
    cancelRequested: (ids) => within(store.cancelRequested(ids)),
    pushes: store.pushes,
    prune: (limit, asideMs) => within(store.prune(limit, asideMs)),
    schedules: (filter) => within(store.schedules(filter)),
    writeSchedule: (write) => within(store.writeSchedule(write)),
    register: (id, worker) => within(store.register(id, worker)),
    rollUp: () => within(store.rollUp()),
    onWork: (listener) => store.onWork(listener),
    onJobs: (listener) => store.onJobs(listener),
    // How long a transaction takes is the handler's choice.
    ...(store.transactions && { transactions: store.transactions }),
  };
}
