import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { StoreBusyError, StoreUnavailableError } from '../errors.ts';
import { doubling, withRetries } from '../retrying.ts';
import type { Lease } from './lease.ts';

const pauses = doubling(50, 2_000);

/** For how long an outcome is sent again after its lease is over, because the store could not be reached. */
const LONGEST_OUTAGE_MS = 3_600_000;

/** How long the longest of these leases lasts. */
const leftOf = (leases: readonly Lease[]): number =>
  leases.reduce((longest, { leftMs }) => Math.max(longest, leftMs), 0);

/**
 * Repeats a store call until it is answered, for as long as any of these leases lasts; then throws its error. The call is
 * made at least once: the fence makes a late call harmless. Even an error of our own is tried again: what a run did must not
 * be lost while there is time left to record it.
 */
export function whileLeased<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
): Promise<Answer> {
  return withRetries(clock, { policy: pauses, isTransient: () => true, leftMs: () => leftOf(leases) }, call);
}

export interface RecordOptions {
  /** Once true, an outcome is only sent again while its lease lasts, so that a worker can stop during an outage. */
  readonly isStopping: () => boolean;
  /** Hears of the first failure that is not the last. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Repeats a settlement like `whileLeased`, and longer while the store cannot be reached: no lease expires then
 * (`store/expiry.ts`), and the fence refuses the settlement when another run has begun.
 */
export function untilRecorded<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
  { isStopping, onRetry }: RecordOptions,
): Promise<Answer> {
  const outageEndsAt = clock.monotonic() + LONGEST_OUTAGE_MS;
  let isOutage = false;
  return withRetries(
    clock,
    {
      policy: pauses,
      isTransient: (error) => {
        isOutage = error instanceof StoreUnavailableError || error instanceof StoreBusyError;
        return true;
      },
      leftMs: () => (isOutage && !isStopping() ? outageEndsAt - clock.monotonic() : leftOf(leases)),
      onRetry: (error, failures) => {
        if (failures === 1) onRetry(error);
      },
    },
    call,
  );
}

/** The answer, or an error when there is none in time: a call that hangs must not hang the worker. */
export function answerWithin<Answer>(clock: Clock, timeoutMs: number, call: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () =>
      reject(new StoreUnavailableError(`the store gave no answer within ${formatDuration(timeoutMs)}`)),
    );
    call.then(resolve, reject).finally(() => timer.cancel());
  });
}
