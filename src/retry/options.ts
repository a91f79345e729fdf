import { checkInteger, checkKeys, checkNumber, checkOneOf, copyData, namesOf, unexpected } from '../config.ts';
import { formatDuration, parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { type Backoff, backoffKinds, type Jitter, jitterNames, type RetryOptions, type RetryPolicy } from './policy.ts';

const optionNames = namesOf<RetryOptions>({
  maxAttempts: true,
  maxRetries: true,
  backoff: true,
  jitter: true,
  deadline: true,
  maxCrashes: true,
  maxRuns: true,
});

/** Every policy is stored with each of its jobs: a table is for naming delays, not for storing data. */
const LONGEST_TABLE = 1_000;

/**
 * Checks what a user wrote and answers the part of a policy it determines. `what` is the path that
 * messages name: with `retry`, a bad base is reported as `retry.backoff.base`.
 */
export function validateRetryOptions(options: unknown, what: string): Partial<RetryPolicy> {
  checkKeys(options, optionNames, what);
  const { backoff, jitter, deadline, maxCrashes, maxRuns } = options;
  const maxAttempts = readMaxAttempts(options, what);
  return {
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(backoff === undefined ? {} : { backoff: readBackoff(backoff, `${what}.backoff`) }),
    ...(jitter === undefined ? {} : { jitter: readJitter(jitter, `${what}.jitter`) }),
    ...(deadline === undefined ? {} : { deadlineMs: readDeadline(deadline, `${what}.deadline`) }),
    ...(maxCrashes === undefined ? {} : { maxCrashes: checkInteger(maxCrashes, `${what}.maxCrashes`, { min: 1 }) }),
    ...(maxRuns === undefined ? {} : { maxRuns: checkInteger(maxRuns, `${what}.maxRuns`, { min: 1 }) }),
  };
}

function readMaxAttempts({ maxAttempts, maxRetries }: Record<string, unknown>, what: string): number | undefined {
  if (maxAttempts !== undefined && maxRetries !== undefined) {
    throw new ConfigError(
      `${what}: expected maxAttempts or maxRetries, got both. ` +
        'Give one: maxAttempts counts the first attempt too, so maxRetries 3 is maxAttempts 4.',
    );
  }
  if (maxRetries !== undefined) {
    const max = Number.MAX_SAFE_INTEGER - 1;
    return checkInteger(maxRetries, `${what}.maxRetries`, { min: 0, max, hint: '0 means never retry.' }) + 1;
  }
  if (maxAttempts === undefined) return undefined;
  const hint = 'It is the total number of attempts, the first included: 1 means never retry.';
  return checkInteger(maxAttempts, `${what}.maxAttempts`, { min: 1, hint });
}

function readBackoff(backoff: unknown, what: string): Backoff {
  checkKeys(backoff, ['kind', 'base', 'factor', 'max', 'delays'], what);
  const kind = checkOneOf(backoff.kind, backoffKinds, `${what}.kind`);
  switch (kind) {
    case 'exponential':
      checkKeys(backoff, ['kind', 'base', 'factor', 'max'], `${what} of kind ${kind}`);
      return { kind, ...readBaseAndMax(backoff, what), factor: readFactor(backoff.factor, `${what}.factor`) };
    case 'linear':
    case 'fibonacci':
      checkKeys(backoff, ['kind', 'base', 'max'], `${what} of kind ${kind}`);
      return { kind, ...readBaseAndMax(backoff, what) };
    case 'fixed':
      checkKeys(backoff, ['kind', 'base'], `${what} of kind ${kind}`);
      return { kind, baseMs: readDelay(backoff.base, `${what}.base`) };
    case 'table':
      checkKeys(backoff, ['kind', 'delays'], `${what} of kind ${kind}`);
      return { kind, delaysMs: readTable(backoff.delays, `${what}.delays`) };
  }
}

function readBaseAndMax({ base, max }: Record<string, unknown>, what: string): { baseMs: number; maxMs: number } {
  const baseMs = readDelay(base, `${what}.base`);
  const maxMs = max === undefined ? LONGEST_DELAY_MS : readDelay(max, `${what}.max`);
  if (maxMs >= baseMs) return { baseMs, maxMs };
  throw unexpected(`${what}.max`, `at least the base, ${formatDuration(baseMs)}`, max, 'Raise max or lower base.');
}

function readFactor(factor: unknown, what: string): number {
  if (factor === undefined) return 2;
  return checkNumber(factor, what, { min: 1, hint: 'A backoff grows; 1 keeps it as it is.' });
}

function readTable(delays: unknown, what: string): number[] {
  if (!Array.isArray(delays) || delays.length === 0 || delays.length > LONGEST_TABLE) {
    throw unexpected(
      what,
      `a list of 1 to ${LONGEST_TABLE} durations`,
      delays,
      "Write for example ['1s', '5s', '1m'].",
    );
  }
  return Array.from(delays, (delay: unknown, index) => readDelay(delay, `${what}[${index}]`));
}

function readDelay(delay: unknown, what: string): number {
  const ms = parseDuration(delay, what);
  if (ms <= LONGEST_DELAY_MS) return ms;
  throw unexpected(what, `a delay of at most ${formatDuration(LONGEST_DELAY_MS)}`, delay);
}

function readJitter(jitter: unknown, what: string): Jitter {
  if (typeof jitter === 'string') return checkOneOf(jitter, jitterNames, what);
  if (typeof jitter !== 'object' || jitter === null) {
    throw unexpected(what, `one of ${jitterNames.join(', ')} or { spread: 0.2 }`, jitter);
  }
  checkKeys(jitter, ['spread'], what);
  const hint = 'A spread of 0.2 makes a delay up to 20 % shorter or longer.';
  return { spread: checkNumber(jitter.spread, `${what}.spread`, { min: 0, max: 1, hint }) };
}

function readDeadline(deadline: unknown, what: string): number | null {
  if (deadline === null) return null;
  const ms = parseDuration(deadline, what);
  if (ms > 0) return ms;
  throw unexpected(what, 'a duration above 0, or null for no deadline', deadline);
}

/** Returns a copy, so that the options are still as they were checked when a job is enqueued. */
export function checkRetry(value: RetryOptions, what: string): RetryOptions {
  const retry = copyData(value, what);
  validateRetryOptions(retry, what);
  return retry;
}
