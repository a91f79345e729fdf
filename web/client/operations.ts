/* Written by web/client/generate.ts from the OpenAPI document. */

export interface Operations {
  /** List dead jobs, the newest dead first. */
  listDead: {
    params: undefined;
    query: { name?: string; queue?: string; state?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; cursor?: string; payload?: string };
    body: undefined;
    answer: { items: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; next: string | null };
  };
  /** Bring dead jobs back. */
  redriveDead: {
    params: undefined;
    query: undefined;
    body: { ids?: readonly (string)[]; name?: string; queue?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; dryRun?: boolean; background?: boolean; state?: "dead"; rate?: string; keepAttempts?: boolean; canary?: number; canaryTimeout?: number | string; edit?: unknown };
    answer: { dryRun: boolean; count: number; isExact: boolean; ids: readonly (string)[]; samples: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; skipped: readonly ({ id: string; why: string })[]; cancelling: number; dueUntil: number | null; others: readonly ({ id: string; state: string; use: string | null })[]; operation: unknown; resumed: boolean; stopped: string | null } | { operation: unknown };
  };
  /** Delete dead jobs for good. */
  discardDead: {
    params: undefined;
    query: undefined;
    body: { ids?: readonly (string)[]; name?: string; queue?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; dryRun?: boolean; background?: boolean; state?: "dead" };
    answer: { dryRun: boolean; count: number; isExact: boolean; ids: readonly (string)[]; samples: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; skipped: readonly ({ id: string; why: string })[]; cancelling: number; dueUntil: number | null; others: readonly ({ id: string; state: string; use: string | null })[]; operation: unknown; resumed: boolean; stopped: string | null } | { operation: unknown };
  };
  /** Cancel many jobs. */
  cancelJobs: {
    params: undefined;
    query: undefined;
    body: { ids?: readonly (string)[]; name?: string; queue?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; dryRun?: boolean; background?: boolean; state?: readonly ("scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled")[] };
    answer: { dryRun: boolean; count: number; isExact: boolean; ids: readonly (string)[]; samples: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; skipped: readonly ({ id: string; why: string })[]; cancelling: number; dueUntil: number | null; others: readonly ({ id: string; state: string; use: string | null })[]; operation: unknown; resumed: boolean; stopped: string | null } | { operation: unknown };
  };
  /** Let many scheduled or retrying jobs start now; of running ones the next wait ends at once. */
  runJobsNow: {
    params: undefined;
    query: undefined;
    body: { ids?: readonly (string)[]; name?: string; queue?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; dryRun?: boolean; background?: boolean; state?: readonly ("scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled")[]; rate?: string };
    answer: { dryRun: boolean; count: number; isExact: boolean; ids: readonly (string)[]; samples: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; skipped: readonly ({ id: string; why: string })[]; cancelling: number; dueUntil: number | null; others: readonly ({ id: string; state: string; use: string | null })[]; operation: unknown; resumed: boolean; stopped: string | null } | { operation: unknown };
  };
  /** Enqueue a job. */
  enqueueJob: {
    params: undefined;
    query: undefined;
    body: { name: string; input?: unknown; delay?: number | string; at?: string; priority?: number; queue?: string; key?: string; keyUntil?: "started" | "finished" | "pruned"; debounce?: number | string | { wait: number | string; maxWait?: number | string }; throttle?: number | string; tags?: readonly (string)[]; retry?: { maxAttempts?: number; maxRetries?: number; backoff?: { kind: "exponential" | "linear" | "fixed" | "fibonacci" | "table"; base?: number | string; factor?: number; max?: number | string; delays?: readonly (number | string)[] }; jitter?: "none" | "full" | "equal" | "decorrelated" | { spread: number }; deadline?: number | string | null; maxCrashes?: number; maxRuns?: number }; onDead?: readonly (never)[] };
    answer: { id: string; existed: boolean; replaced?: true; capped?: { asked: number; hardCap: number } };
  };
  /** List jobs, newest first. */
  listJobs: {
    params: undefined;
    query: { name?: string; queue?: string; state?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number; cursor?: string; payload?: string };
    body: undefined;
    answer: { items: readonly ({ id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null })[]; next: string | null };
  };
  /** Enqueue many jobs of one name. */
  enqueueJobs: {
    params: undefined;
    query: undefined;
    body: { name: string; jobs: readonly ({ input?: unknown; delay?: number | string; at?: string; priority?: number; queue?: string; key?: string; keyUntil?: "started" | "finished" | "pruned"; debounce?: number | string | { wait: number | string; maxWait?: number | string }; throttle?: number | string; tags?: readonly (string)[]; retry?: { maxAttempts?: number; maxRetries?: number; backoff?: { kind: "exponential" | "linear" | "fixed" | "fibonacci" | "table"; base?: number | string; factor?: number; max?: number | string; delays?: readonly (number | string)[] }; jitter?: "none" | "full" | "equal" | "decorrelated" | { spread: number }; deadline?: number | string | null; maxCrashes?: number; maxRuns?: number }; onDead?: readonly (never)[] })[] };
    answer: { jobs: readonly ({ id: string; existed: boolean; replaced?: true; capped?: { asked: number; hardCap: number } })[] };
  };
  /** Count jobs. */
  countJobs: {
    params: undefined;
    query: { name?: string; queue?: string; state?: string; reason?: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs"; error?: string; message?: string; tag?: string; key?: string; since?: string; until?: string; attempts?: number; limit?: number };
    body: undefined;
    answer: { count: number; isExact: boolean };
  };
  /** One job. */
  getJob: {
    params: { id: string };
    query: undefined;
    body: undefined;
    answer: { id: string; name: string; queue: string; state: "scheduled" | "ready" | "retrying" | "running" | "completed" | "dead" | "cancelled"; lane: "fresh" | "retry" | "redrive" | "suspect"; priority: number; payload: unknown; version: number | null; key: string | null; tags: readonly (string)[]; resource: string | null; limits: readonly ({ limit: string; key: string })[]; policy: { maxAttempts: number }; runs: number; attempts: number; crashes: number; enqueuedAt: number; dueAt: number; firstStartedAt: number | null; finishedAt: number | null; leaseEndsAt: number | null; worker: string | null; deadReason: "exhausted" | "unrecoverable" | "deadline" | "poison" | "no-handler" | "runs" | null; lastError: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; progress: unknown; result: unknown; resultError: string | null; cancelRequested: boolean; trace?: string | null };
  };
  /** The ledger of a job: what each run did, and what was decided. */
  listRuns: {
    params: { id: string };
    query: undefined;
    body: undefined;
    answer: { runs: readonly ({ jobId: string; run: number; attempt: number; outcome: "completed" | "failed" | "crashed" | "snoozed" | "released" | "deferred" | "cancelled"; counted: boolean; worker: string; startedAt: number; endedAt: number; error: { name: string; message: string; code: string | null; status: number | null; stack: string | null; fingerprint?: string; issues?: readonly ({ message: string; path: string })[] } | null; decision: { kind: string; rule: string }; nextDueAt: number | null })[] };
  };
  /** What the runs of a job logged. */
  listLogs: {
    params: { id: string };
    query: { limit?: number };
    body: undefined;
    answer: { logs: readonly ({ run: number; lines: readonly ({ at: number; level: "debug" | "info" | "warn" | "error"; message: string; fields?: object })[]; dropped: number })[] };
  };
  /** Why a job that waits does not run. */
  listWaits: {
    params: { id: string };
    query: undefined;
    body: undefined;
    answer: { reasons: readonly ({ kind: "due" | "aside" | "paused" | "gate" | "limit" | "unserved" | "next"; text: string; about: string | null; until: number | null })[] };
  };
  /** Show what is redacted of a job. */
  revealJob: {
    params: { id: string };
    query: undefined;
    body: Record<string, never>;
    answer: { payload: unknown; progress: unknown; result: unknown; logs: readonly ({ run: number; lines: readonly ({ at: number; level: "debug" | "info" | "warn" | "error"; message: string; fields?: object })[]; dropped: number })[] };
  };
  /** What the handler of a job returned; waits for it. */
  getResult: {
    params: { id: string };
    query: { wait?: string };
    body: undefined;
    answer: { result: unknown } | { ended: false };
  };
  /** Cancel a job. */
  cancelJob: {
    params: { id: string };
    query: undefined;
    body: Record<string, never>;
    answer: { result: string };
  };
  /** Let a scheduled or retrying job start now; of a running one the next wait ends at once. */
  runJobNow: {
    params: { id: string };
    query: undefined;
    body: Record<string, never>;
    answer: { changed: boolean };
  };
  /** All queues, and whether they are paused. */
  listQueues: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** Let no job of a queue start. */
  pauseQueue: {
    params: { name: string };
    query: undefined;
    body: { force?: boolean };
    answer: { queue: string; paused: boolean };
  };
  /** Let jobs of a queue start again. */
  resumeQueue: {
    params: { name: string };
    query: undefined;
    body: { force?: boolean };
    answer: { queue: string; paused: boolean };
  };
  /** Gates that were heard of lately, those that are not closed first. */
  listGates: {
    params: undefined;
    query: { limit?: number; kind?: "resource" | "job" | "parent" };
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** One gate, why it is as it is, and its history. */
  getGate: {
    params: { name: string };
    query: { kind?: "resource" | "job" | "parent" };
    body: undefined;
    answer: object;
  };
  /** Pin a gate open: nothing of its resource starts. */
  openGate: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Pin a gate closed: everything of its resource starts. */
  closeGate: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Give a gate back to its rules. */
  unpinGate: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Close a gate and let it forget what it saw. */
  resetGate: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** All limits, and how much of each is in use. */
  listLimits: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** One limit and its keys. */
  getLimit: {
    params: { name: string };
    query: { key?: string };
    body: undefined;
    answer: object;
  };
  /** Change what a limit allows, from now on and in all processes. */
  setLimit: {
    params: { name: string };
    query: undefined;
    body: { key?: string; concurrency?: number | null; total?: number | null; rate?: { limit: number; per: number | string; burst?: number } | null };
    answer: object;
  };
  /** Take away what was set by hand. */
  resetLimit: {
    params: { name: string };
    query: undefined;
    body: { key?: string };
    answer: object;
  };
  /** Schedules by name. */
  listSchedules: {
    params: undefined;
    query: { limit?: number; cursor?: string };
    body: undefined;
    answer: { items: readonly (object)[]; next: string | null };
  };
  /** One schedule, its next times and its last job. */
  getSchedule: {
    params: { name: string };
    query: undefined;
    body: undefined;
    answer: object;
  };
  /** Create a schedule, or change it. Give one of cron, every and at. */
  setSchedule: {
    params: { name: string };
    query: undefined;
    body: { job: string; input?: unknown; cron?: string; timezone?: string; every?: number | string; anchor?: string; at?: string; misfire?: "skip" | "once" | "all"; misfireLimit?: number; overlap?: "skip" | "allow"; queue?: string; priority?: number; tags?: readonly (string)[] };
    answer: object;
  };
  /** Remove a schedule; jobs that it enqueued stay. */
  removeSchedule: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: { removed: true };
  };
  /** Fire no tick of a schedule until it is resumed. */
  pauseSchedule: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Go on with a schedule. */
  resumeSchedule: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Enqueue the job of a schedule now. */
  triggerSchedule: {
    params: { name: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** What jobs fail with: errors of one kind are one group, those with the most jobs first. */
  listErrors: {
    params: undefined;
    query: { name?: string; queue?: string; state?: "failing" | "dead"; since?: string; limit?: number };
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** One error group, by its fingerprint or the start of it. */
  getError: {
    params: { name: string };
    query: undefined;
    body: undefined;
    answer: object;
  };
  /** Totals since the store was made, and how many jobs are in each state. */
  getStats: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: object;
  };
  /** Workers that have registered and not stopped. */
  listWorkers: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** The record of what operators did: who, from where, what, how many; newest first. */
  listAudit: {
    params: undefined;
    query: { limit?: number };
    body: undefined;
    answer: { items: readonly (object)[] };
  };
  /** End an operation that is not finished; what it has changed stays so. */
  stopOperation: {
    params: { id: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Go on with a bulk action that was stopped, or whose process ended. */
  resumeOperation: {
    params: { id: string };
    query: undefined;
    body: Record<string, never>;
    answer: object;
  };
  /** Live changes, as Server-Sent Events. */
  streamEvents: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: unknown;
  };
  /** How many jobs of a queue could start now, for autoscalers. */
  getScale: {
    params: { name: string };
    query: undefined;
    body: undefined;
    answer: { queue: string; due: number; admissible: number; paused: boolean };
  };
  /** Who the caller is to this server, and what it may do. */
  getSession: {
    params: undefined;
    query: undefined;
    body: undefined;
    answer: { name: string; scopes: readonly ("read" | "write" | "work" | "admin")[]; isLocal: boolean; version: string; store: string; now: number };
  };
  /** What waits, which retries fall due within the next hour, and when the backlog will be empty. */
  getForecast: {
    params: undefined;
    query: { queue?: string };
    body: undefined;
    answer: { now: number; isComplete: boolean; backlog: { count: number; isExact: boolean }; running: { count: number; isExact: boolean }; ended: { completed: number; dead: number; cancelled: number }; queues: readonly ({ queue: string; running: number; ended: { completed: number; dead: number; cancelled: number } })[]; lanes: readonly ({ queue: string; lane: "fresh" | "retry" | "redrive" | "suspect"; due: { count: number; isExact: boolean }; later: { count: number; isExact: boolean }; oldestDueAt: number | null })[]; retries: readonly ({ at: number; count: number; isExact: boolean; expected: number })[]; series: readonly ({ resource: string | null; name: string; total: { count: number; isExact: boolean; expected: number }; minutes: readonly (number)[] })[]; arrivedPerMinute: number; endedPerMinute: number; outlook: "empty" | "draining" | "growing" | "stalled"; emptyAt: number | null };
  };
  /** Runs, failures, retries and run times over time, in at most 500 steps, and by job name. */
  getHistory: {
    params: undefined;
    query: { from?: string; to?: string; step?: string; name?: string };
    body: undefined;
    answer: { from: number; to: number; stepMs: number; now: number; upTo: number; total: { runs: number; completed: number; failed: number; retries: number; dead: number; runMs: number; p50Ms: number | null; p95Ms: number | null }; points: readonly ({ at: number; runs: number; completed: number; failed: number; retries: number; dead: number; runMs: number; p50Ms: number | null; p95Ms: number | null })[]; names: readonly ({ name: string; runs: number; completed: number; failed: number; retries: number; dead: number; runMs: number; p50Ms: number | null; p95Ms: number | null })[]; others: { runs: number; completed: number; failed: number; retries: number; dead: number; runMs: number; p50Ms: number | null; p95Ms: number | null } | null };
  };
  /** Failed runs over time by kind of error, job name and queue, in at most 200 steps. */
  getErrorHistory: {
    params: undefined;
    query: { error?: string; name?: string; queue?: string; from?: string; to?: string; step?: string };
    body: undefined;
    answer: { from: number; to: number; stepMs: number; now: number; upTo: number; series: readonly ({ fingerprint: string; name: string; queue: string; failures: readonly (number)[]; dead: readonly (number)[] })[] };
  };
  /** What the ledger says about retry policies, with proposals. */
  getAdvice: {
    params: undefined;
    query: { name?: string; days?: number };
    body: undefined;
    answer: object;
  };
}

/** Method and path of each. */
export const operations: Readonly<Record<keyof Operations, readonly [method: string, path: string]>> = {
  listDead: ['GET', '/api/v1/dead'],
  redriveDead: ['POST', '/api/v1/dead/redrive'],
  discardDead: ['POST', '/api/v1/dead/discard'],
  cancelJobs: ['POST', '/api/v1/jobs/cancel'],
  runJobsNow: ['POST', '/api/v1/jobs/run-now'],
  enqueueJob: ['POST', '/api/v1/jobs'],
  listJobs: ['GET', '/api/v1/jobs'],
  enqueueJobs: ['POST', '/api/v1/jobs/batch'],
  countJobs: ['GET', '/api/v1/jobs/count'],
  getJob: ['GET', '/api/v1/jobs/{id}'],
  listRuns: ['GET', '/api/v1/jobs/{id}/runs'],
  listLogs: ['GET', '/api/v1/jobs/{id}/logs'],
  listWaits: ['GET', '/api/v1/jobs/{id}/waits'],
  revealJob: ['POST', '/api/v1/jobs/{id}/reveal'],
  getResult: ['GET', '/api/v1/jobs/{id}/result'],
  cancelJob: ['POST', '/api/v1/jobs/{id}/cancel'],
  runJobNow: ['POST', '/api/v1/jobs/{id}/run-now'],
  listQueues: ['GET', '/api/v1/queues'],
  pauseQueue: ['POST', '/api/v1/queues/{name}/pause'],
  resumeQueue: ['POST', '/api/v1/queues/{name}/resume'],
  listGates: ['GET', '/api/v1/gates'],
  getGate: ['GET', '/api/v1/gates/{name}'],
  openGate: ['POST', '/api/v1/gates/{name}/open'],
  closeGate: ['POST', '/api/v1/gates/{name}/close'],
  unpinGate: ['POST', '/api/v1/gates/{name}/unpin'],
  resetGate: ['POST', '/api/v1/gates/{name}/reset'],
  listLimits: ['GET', '/api/v1/limits'],
  getLimit: ['GET', '/api/v1/limits/{name}'],
  setLimit: ['PUT', '/api/v1/limits/{name}'],
  resetLimit: ['POST', '/api/v1/limits/{name}/reset'],
  listSchedules: ['GET', '/api/v1/schedules'],
  getSchedule: ['GET', '/api/v1/schedules/{name}'],
  setSchedule: ['PUT', '/api/v1/schedules/{name}'],
  removeSchedule: ['DELETE', '/api/v1/schedules/{name}'],
  pauseSchedule: ['POST', '/api/v1/schedules/{name}/pause'],
  resumeSchedule: ['POST', '/api/v1/schedules/{name}/resume'],
  triggerSchedule: ['POST', '/api/v1/schedules/{name}/trigger'],
  listErrors: ['GET', '/api/v1/errors'],
  getError: ['GET', '/api/v1/errors/{name}'],
  getStats: ['GET', '/api/v1/stats'],
  listWorkers: ['GET', '/api/v1/workers'],
  listAudit: ['GET', '/api/v1/audit'],
  stopOperation: ['POST', '/api/v1/audit/{id}/stop'],
  resumeOperation: ['POST', '/api/v1/audit/{id}/resume'],
  streamEvents: ['GET', '/api/v1/events'],
  getScale: ['GET', '/scale/{name}'],
  getSession: ['GET', '/api/v1/session'],
  getForecast: ['GET', '/api/v1/forecast'],
  getHistory: ['GET', '/api/v1/history'],
  getErrorHistory: ['GET', '/api/v1/history/errors'],
  getAdvice: ['GET', '/api/v1/advice'],
};
