import type { Advice } from '../../src/advise/index.ts';
import type { BulkResult } from '../../src/bulk/bulk.ts';
import type { GateDetails } from '../../src/gates.ts';
import type { Job, RunRecord } from '../../src/job.ts';
import type { LimitDetails, LimitSummary } from '../../src/limits.ts';
import type { GateInfo } from '../../src/observe/gate-info.ts';
import type { Stats } from '../../src/observe/stats.ts';
import type { LogLine, RunLog } from '../../src/run-log.ts';
import type { ScheduleInfo } from '../../src/schedules.ts';
import type { ErrorGroup, Operation, QueueInfo, RegisteredWorker } from '../../src/store/store.ts';
import type { Operations } from './operations.ts';

export type {
  BulkResult,
  ErrorGroup,
  GateDetails,
  GateInfo,
  Job,
  LimitDetails,
  LimitSummary,
  LogLine,
  Operation,
  QueueInfo,
  RegisteredWorker,
  RunLog,
  RunRecord,
  ScheduleInfo,
  Stats,
};

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

interface List<Item> {
  readonly items: readonly Item[];
}

export interface ScheduleAnswer {
  readonly schedule: ScheduleInfo;
  readonly nextTimes: readonly number[];
  readonly lastJobId: string | null;
  readonly now: number;
}

/** What is redacted of a job. */
export interface Revealed {
  readonly payload: unknown;
  readonly progress: unknown;
  readonly result: unknown;
  readonly logs: readonly RunLog[];
}

/** Where the document leaves the shape of an answer open, it is that of the library. */
interface LibraryAnswers {
  getAdvice: Advice;
  listJobs: Page<Job>;
  listDead: Page<Job>;
  getJob: Job;
  listRuns: { readonly runs: readonly RunRecord[] };
  listLogs: { readonly logs: readonly RunLog[] };
  revealJob: Revealed;
  redriveDead: BulkResult;
  discardDead: BulkResult;
  cancelJobs: BulkResult;
  runJobsNow: BulkResult;
  listErrors: List<ErrorGroup>;
  getError: ErrorGroup;
  getStats: Stats;
  listWorkers: List<RegisteredWorker>;
  listAudit: List<Operation>;
  stopOperation: Operation;
  listQueues: List<QueueInfo>;
  listGates: List<GateInfo>;
  getGate: GateDetails;
  openGate: GateInfo;
  closeGate: GateInfo;
  unpinGate: GateInfo;
  resetGate: GateInfo;
  listLimits: List<LimitSummary>;
  getLimit: LimitDetails;
  setLimit: LimitDetails;
  resetLimit: LimitDetails;
  listSchedules: Page<ScheduleInfo>;
  getSchedule: ScheduleAnswer;
}

export type Answer<Name extends keyof Operations> = Name extends keyof LibraryAnswers
  ? LibraryAnswers[Name]
  : Operations[Name]['answer'];
