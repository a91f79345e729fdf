import type { DeadReason } from './retry/decision.ts';

/**
 * Everything Mulligan throws on purpose: a closed set of classes with stable codes.
 * A message says what was expected, what was given, and what to do next.
 */
export type ErrorCode =
  | 'CONFIG'
  | 'INPUT'
  | 'PAYLOAD'
  | 'CONFLICT'
  | 'CLOSED'
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'LEASE_LOST'
  | 'JOB_DEAD'
  | 'JOB_CANCELLED'
  | 'JOB_NOT_FOUND'
  | 'RESULT_TIMEOUT'
  | 'RESULT_MISSING'
  | 'STORE_UNAVAILABLE'
  | 'STORE_BUSY'
  | 'STORE_INCOMPATIBLE';

export class MulliganError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    own.add(this);
  }
}

const own = new WeakSet<object>();

/** Whether this package made it. User code may throw a proxy, and `instanceof` would run the code of that. */
export function isOwnError(value: unknown): value is MulliganError {
  return typeof value === 'object' && value !== null && own.has(value);
}

/** A definition, policy or option does not make sense. */
export class ConfigError extends MulliganError {
  constructor(message: string, options?: ErrorOptions) {
    super('CONFIG', message, options);
  }
}

/** A name or an id that nothing has: what a server answers with 404, and a command with exit code 1. */
export class UnknownNameError extends ConfigError {
  /** What to do, which is part of the message too. */
  readonly hint: string | undefined;

  constructor(message: string, hint: string | undefined) {
    super(message);
    this.hint = hint;
  }
}

/** One complaint of an input schema, in the shape Standard Schema reports it. */
export interface InputIssue {
  readonly message: string;
  readonly path: string;
}

/** An input was rejected by its definition's schema. */
export class InputError extends MulliganError {
  readonly issues: readonly InputIssue[];

  constructor(message: string, issues: readonly InputIssue[]) {
    super('INPUT', message);
    this.issues = issues;
  }
}

/** A payload cannot be stored: JSON cannot carry it, or it is too large. */
export class PayloadError extends MulliganError {
  constructor(message: string, options?: ErrorOptions) {
    super('PAYLOAD', message, options);
  }
}

/** An unfinished bulk action of the same jobs stands in the way: it was ordered with other options. Nothing was changed. */
export class ConflictError extends MulliganError {
  /** Of the one in the way; `audit.list` shows it, and `audit.stop` ends it. */
  readonly operationId: string;

  constructor(operationId: string, message: string) {
    super('CONFLICT', message);
    this.operationId = operationId;
  }
}

/** The queue, worker or store was used after it had been closed. */
export class ClosedError extends MulliganError {
  constructor(message: string) {
    super('CLOSED', message);
  }
}

/** The server of a remote queue wants a token (UNAUTHENTICATED), or one that may do more (FORBIDDEN). */
export class AccessError extends MulliganError {
  declare readonly code: 'UNAUTHENTICATED' | 'FORBIDDEN';

  constructor(code: AccessError['code'], message: string) {
    super(code, message);
  }
}

/** A run no longer owns its job; whatever it still writes changes nothing. */
export class LeaseLostError extends MulliganError {
  constructor(message: string) {
    super('LEASE_LOST', message);
  }
}

/** The job that was waited for is dead. `cause` is the error of its last failed run. */
export class JobDeadError extends MulliganError {
  readonly jobId: string;
  readonly reason: DeadReason;

  constructor(jobId: string, reason: DeadReason, message: string, options?: ErrorOptions) {
    super('JOB_DEAD', message, options);
    this.jobId = jobId;
    this.reason = reason;
  }
}

/** The job that was waited for was cancelled. `cause` is the error of its last failed run, if it had one. */
export class JobCancelledError extends MulliganError {
  readonly jobId: string;

  constructor(jobId: string, message: string, options?: ErrorOptions) {
    super('JOB_CANCELLED', message, options);
    this.jobId = jobId;
  }
}

/** No job has this id: it never existed, was rolled back, or outlived its retention. */
export class JobNotFoundError extends MulliganError {
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super('JOB_NOT_FOUND', message);
    this.jobId = jobId;
  }
}

/**
 * The job has not ended within the `timeout` of `mulligan.result`. The job itself goes on. `cause` is the store's error when
 * the store could not be asked.
 */
export class ResultTimeoutError extends MulliganError {
  readonly jobId: string;

  constructor(jobId: string, message: string, options?: ErrorOptions) {
    super('RESULT_TIMEOUT', message, options);
    this.jobId = jobId;
  }
}

/** The job has completed, but what its handler returned could not be stored. */
export class ResultMissingError extends MulliganError {
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super('RESULT_MISSING', message);
    this.jobId = jobId;
  }
}

/** The store cannot be reached or cannot write; the same call may work later. */
export class StoreUnavailableError extends MulliganError {
  constructor(message: string, options?: ErrorOptions) {
    super('STORE_UNAVAILABLE', message, options);
  }
}

/** Another process held the store's lock for too long; nothing was written. */
export class StoreBusyError extends MulliganError {
  constructor(message: string, options?: ErrorOptions) {
    super('STORE_BUSY', message, options);
  }
}

/** This is not a store this version can use; nothing was touched. */
export class StoreIncompatibleError extends MulliganError {
  constructor(message: string, options?: ErrorOptions) {
    super('STORE_INCOMPATIBLE', message, options);
  }
}
