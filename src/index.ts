export type {
  Advice,
  AdviseOptions,
  AttemptRow,
  Choice as AttemptsChoice,
  GroupAdvice,
  LedgerOutage,
  NameAdvice,
  Proposal,
  RetryCost,
} from './advise/index.ts';
export type { OrderOptions } from './audit.ts';
export type { AuditLog } from './audit-log.ts';
export type { BulkProgress, BulkResult, OtherJob } from './bulk/bulk.ts';
export type { CanaryProgress } from './bulk/canary.ts';
export type { Rate } from './bulk/rate.ts';
export type { Moment, Selection } from './bulk/selection.ts';
export type { Clock, Timer } from './clock.ts';
export type {
  AnyJobDefinition,
  DeadJob,
  ImplementOptions,
  JobContext,
  JobDefinition,
  JobOptions,
  PermitOptions,
} from './definition.ts';
export { defineJob, implement } from './definition.ts';
export type { DrainOptions, DrainResult } from './drain.ts';
export type { Duration } from './duration.ts';
export type { EnqueueArgs, EnqueueOptions, EnqueueResult, JobToEnqueue } from './enqueue-options.ts';
export type { ErrorGroups, ErrorListOptions } from './error-groups.ts';
export {
  AccessError,
  ClosedError,
  ConfigError,
  ConflictError,
  type ErrorCode,
  InputError,
  type InputIssue,
  JobCancelledError,
  JobDeadError,
  JobNotFoundError,
  LeaseLostError,
  MulliganError,
  PayloadError,
  ResultMissingError,
  ResultTimeoutError,
  StoreBusyError,
  StoreIncompatibleError,
  StoreUnavailableError,
} from './errors.ts';
export type { GateChange, GateEvent, GateFigures } from './gate/index.ts';
export type { GateDetails, GateListOptions, GateOrderOptions, GateShowOptions, Gates } from './gates.ts';
export type { Job, JobState, KeyLife, KeyUntil, Lane, RunRecord } from './job.ts';
export type { AfterJson } from './json.ts';
export type { LimitKey, LimitRules, LimitSettings, OnLimit } from './limit/limit.ts';
export type { LimitChange, LimitKeyFunction, LimitOptions, LimitValues, RateOptions } from './limit/options.ts';
export type { LimitDetails, LimitKeyOptions, LimitSummary, Limits } from './limits.ts';
export { Mulligan, type MulliganOptions, type QueueDefaults, type ResultOptions } from './mulligan.ts';
export type { ErrorHistory, ErrorHistoryOptions, ErrorSeries } from './observe/error-history.ts';
export type {
  EventMap,
  EventName,
  FinishedEvent,
  GateChangedEvent,
  LimitedEvent,
  Listener,
  RunEvent,
} from './observe/events.ts';
export type { Forecast, ForecastMinute, ForecastOptions, ForecastSeries, Outlook } from './observe/forecast.ts';
export type { GateInfo, GateReason } from './observe/gate-info.ts';
export type { History, HistoryFigures, HistoryName, HistoryOptions, HistoryPoint } from './observe/history.ts';
export type { LimitHold } from './observe/limit-holds.ts';
export type { LogEntry, Logger, LogLevel, LogSink, StructuredLogger } from './observe/log.ts';
export type { RetryStats, Stats } from './observe/stats.ts';
export type { TracerLike } from './observe/tracing.ts';
export type {
  BulkOptions,
  CancelOptions,
  DeadJobs,
  DiscardOptions,
  Jobs,
  ListOptions,
  Queues,
  RedriveOptions,
  RunNowOptions,
} from './operate.ts';
export type { WarningName } from './policy-check/names.ts';
export type { ReactionTo } from './reaction.ts';
export type { ResourceFunction, ResourceKey } from './resource.ts';
export { type OutputType, typeOf } from './result.ts';
export type { Retention, RetentionInfo, RetentionOrderOptions } from './retention.ts';
export type { KeptFor, RetentionOptions } from './retention-options.ts';
export type {
  BackoffArgs,
  BackoffFunction,
  ClassifyFunction,
  ClassifyRule,
  FailedRun,
  Verdict,
} from './retry/classify.ts';
export { Cancel, RetryAfter, Snooze, Unrecoverable } from './retry/control-errors.ts';
export type { DeadReason, Decision, RetryCause } from './retry/decision.ts';
export type { FailureClass, OutcomeKind, StoredError } from './retry/outcome.ts';
export type { Backoff, BackoffOptions, Jitter, RetryOptions, RetryPolicy } from './retry/policy.ts';
export { policies } from './retry/presets.ts';
export type { LogLine, RunLog } from './run-log.ts';
export type { MisfirePolicy } from './schedule/plan.ts';
export type { Timing, TimingOptions } from './schedule/timing.ts';
export type { Overlap, ScheduleDefinition, ScheduleOptions } from './schedule-options.ts';
export { defineSchedule } from './schedule-options.ts';
export type { ScheduleDetails, ScheduleInfo, ScheduleListOptions, Schedules } from './schedules.ts';
export type { InputSchema } from './schema.ts';
export type { ErrorGroup, ErrorGroupName, ErrorSample, GroupState } from './store/error-groups.ts';
export type {
  CancelAnswer,
  ChangeAction,
  Counted,
  GateKind,
  GateRef,
  JobCount,
  JobList,
  LaneBacklog,
  LimitInfo,
  LimitKeyInfo,
  LimitOverride,
  Operation,
  OperationOptions,
  QueueInfo,
  QueueLoad,
  RegisteredWorker,
  SkippedJob,
  SkipReason,
  Store,
  Totals,
  TransactionClient,
  WorkerState,
} from './store/store.ts';
export type { TagsFunction } from './tags.ts';
export type { QueueOptions, WorkOptions } from './worker/options.ts';
export type { Worker } from './worker/worker.ts';
export type { Workers } from './workers.ts';
