import type { Store } from './store.ts';

/*
 * The one list of what a store can do. The facades of stores, the threads of SQLite, the store over HTTP, the routes of the
 * server, the simulation's faulty network and docs/security.md are made from it, so a new verb is written down here and in
 * `Store`; the compiler asks for the rest.
 */

/** A verb is what a caller asks of a store and waits for. The other members say what the store is, or let it live. */
export type VerbName = Exclude<
  { [Name in keyof Store]-?: Store[Name] extends (...args: never[]) => Promise<unknown> ? Name : never }[keyof Store],
  'close'
>;

/** What a token may hold; any of those that a verb lists is enough, and `admin` holds all. */
export type VerbScope = 'read' | 'write' | 'work' | 'admin';

export type AnswerSize = 'claim' | 'page' | 'rows';

export interface Verb {
  readonly mode: 'read' | 'write';
  /** Who may call it over HTTP. Without it, no remote program needs the verb and it is not offered. */
  readonly scopes?: readonly VerbScope[];
  /**
   * How large an answer may be, unless one item alone is larger: a claim ends at CLAIM_BYTES, a page at PAGE_BYTES, and rows
   * are as many as were asked for. Without it, the answer is a few rows.
   */
  readonly answer?: AnswerSize;
  /** Whatever it changed, workers look for work afterwards. Other verbs wake them by what they did: each store sees to that. */
  readonly wakes?: 'workers';
  /**
   * Most calls find nothing to do, and those are answered in a read transaction: idle workers ask again and again, and must
   * not compete for a write lock.
   */
  readonly isOftenIdle?: true;
  /** Operators give it. It leaves a row in the audit, in the same transaction. */
  readonly isOrder?: true;
  /** A worker waits for its answer however long it takes: a late one may hold claimed jobs. */
  readonly isAwaited?: true;
}

/**
 * Verbs that write stand in the order in which one transaction serves them: leases are extended before anything else, and
 * what a settlement frees can be claimed by the claim beside it.
 */
export const verbs = {
  heartbeat: { mode: 'write', scopes: ['work'] },
  report: { mode: 'write', scopes: ['work'] },
  settle: { mode: 'write', scopes: ['work'] },
  remember: { mode: 'write', scopes: ['work'] },
  enqueue: { mode: 'write', scopes: ['write'] },
  writeSchedule: { mode: 'write', scopes: ['work'], isOrder: true },
  cancel: { mode: 'write', scopes: ['admin'], isOrder: true },
  change: { mode: 'write', scopes: ['admin'], isOrder: true },
  hold: { mode: 'write', scopes: ['admin'], wakes: 'workers', isOrder: true },
  release: { mode: 'write', scopes: ['admin'], wakes: 'workers', isOrder: true },
  changeGate: { mode: 'write', scopes: ['admin'], wakes: 'workers', isOrder: true },
  writeLimits: { mode: 'write', scopes: ['write', 'work'], wakes: 'workers', isOrder: true },
  writeRetention: { mode: 'write', scopes: ['work'], isOrder: true },
  permit: { mode: 'write', scopes: ['work'], isOftenIdle: true },
  prune: { mode: 'write', scopes: ['work'] },
  rollUp: { mode: 'write', scopes: ['work'], isOftenIdle: true },
  register: { mode: 'write', scopes: ['work'] },
  expired: { mode: 'write', scopes: ['work'], answer: 'claim', isOftenIdle: true },
  claimGated: {
    mode: 'write',
    scopes: ['work'],
    answer: 'claim',
    isOftenIdle: true,
    isAwaited: true,
  },
  claimLimited: {
    mode: 'write',
    scopes: ['work'],
    answer: 'claim',
    isOftenIdle: true,
    isAwaited: true,
  },
  claim: { mode: 'write', scopes: ['work'], answer: 'claim', isOftenIdle: true, isAwaited: true },

  recall: { mode: 'read', scopes: ['work'], answer: 'rows' },
  cancelRequested: { mode: 'read', scopes: ['work'] },
  get: { mode: 'read', scopes: ['read', 'work'], answer: 'page' },
  ended: { mode: 'read', scopes: ['read', 'work'], answer: 'page' },
  list: { mode: 'read', scopes: ['read', 'work'], answer: 'page' },
  count: { mode: 'read', scopes: ['read', 'work'] },
  operations: { mode: 'read', scopes: ['read'], answer: 'rows' },
  runs: { mode: 'read', scopes: ['read', 'work'], answer: 'rows' },
  logs: { mode: 'read', scopes: ['read', 'work'], answer: 'rows' },
  ledger: { mode: 'read', scopes: ['read'], answer: 'rows' },
  stats: { mode: 'read', scopes: ['read', 'work'] },
  forecast: { mode: 'read', scopes: ['read', 'work'] },
  history: { mode: 'read', scopes: ['read', 'work'] },
  gates: { mode: 'read', scopes: ['read', 'work'], answer: 'rows' },
  gateHistory: { mode: 'read', scopes: ['read', 'work'] },
  queues: { mode: 'read', scopes: ['read', 'work'] },
  limits: { mode: 'read', scopes: ['read', 'write', 'work'], answer: 'rows' },
  limitKeys: { mode: 'read', scopes: ['read', 'write', 'work'], answer: 'rows' },
  retention: { mode: 'read', scopes: ['read', 'work'] },
  schedules: { mode: 'read', scopes: ['read', 'work'], answer: 'rows' },
  workers: { mode: 'read', scopes: ['read', 'work'] },
  errorGroups: { mode: 'read', scopes: ['read', 'work'], answer: 'rows' },
  errorHistory: { mode: 'read', scopes: ['read', 'work'] },
} as const;

type Table = typeof verbs;
/** The table has every verb of `Store`; `verbNames` says that it has no other. */
const rows: Readonly<Record<VerbName, Verb>> = verbs;
/** The verbs whose row has these columns. */
type With<Columns> = { [Name in VerbName]: Table[Name] extends Columns ? Name : never }[VerbName];

export type ReadVerb = With<{ readonly mode: 'read' }>;
export type WriteVerb = With<{ readonly mode: 'write' }>;
export type RemoteVerb = With<{ readonly scopes: readonly VerbScope[] }>;
export type OrderVerb = With<{ readonly isOrder: true }>;
export type OftenIdleVerb = With<{ readonly isOftenIdle: true }>;

export const verbNames: readonly VerbName[] = Object.keys(verbs) as (keyof Table)[];
export const readVerbs: readonly ReadVerb[] = verbNames.filter(isRead);
export const writeVerbs: readonly WriteVerb[] = verbNames.filter((name): name is WriteVerb => !isRead(name));
export const remoteVerbs: readonly RemoteVerb[] = verbNames.filter(
  (name): name is RemoteVerb => rowOf(name).scopes !== undefined,
);

/** The row of a verb that is not known until it is called. */
export function rowOf(name: VerbName): Verb {
  return rows[name];
}

export function isRead(name: VerbName): name is ReadVerb {
  return rowOf(name).mode === 'read';
}
