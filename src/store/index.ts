/** For those who build a store of their own: the contract, and the rules that every store shares. */
export {
  isTerminal,
  type Job,
  type JobState,
  type KeyLife,
  type Lane,
  type RunRecord,
  type Settled,
  settledBy,
  stateAt,
  transitions,
} from '../job.ts';
export { isExhausted, OPERATIONS_KEPT_MS, RESUMED_WITHIN_MS, sizeOfPart, statesFor } from './change.ts';
export { fillQuotas, fillTurns, type Take } from './fill.ts';
export { isListedByEnd, isSelected, MOST_COUNTED, SCAN_ROWS, statesOf } from './selection.ts';
export type {
  CancelAnswer,
  ChangeAction,
  ChangeAnswer,
  ChangeRequest,
  Claim,
  ClaimedJob,
  ClaimRequest,
  Enqueued,
  Fence,
  Heartbeat,
  HeartbeatAnswer,
  HoldTarget,
  JobCount,
  JobFilter,
  JobList,
  JobSelection,
  NewJob,
  Operation,
  QueueInfo,
  QueueQuota,
  Retention,
  SettleAnswer,
  Settlement,
  SkippedJob,
  SkipReason,
  StatsRow,
  Store,
  StoreStats,
  Totals,
  Unsubscribe,
} from './store.ts';
export { emptyTotals, type MutableTotals } from './totals.ts';
