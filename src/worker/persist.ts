import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { StoreBusyError, StoreUnavailableError } from '../errors.ts';
import { doubling, withRetries } from '../retrying.ts';
import type { Lease } from './lease.ts';

const pauses = doubling(50, 2_000);

/**
 * Repeats a store call until it is answered, for as long as any of these leases lasts; then throws its error. The call is
 * made at least once: the fence makes a late call harmless.
 */
export function whileLeased<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
): Promise<Answer> {
  return withRetries(
    clock,
    {
      policy: pauses,
      // Even an error of our own: what a run did must not be lost while there is time left to record it.
      isTransient: () => true,
      leftMs: () => leases.reduce((longest, { leftMs }) => Math.max(longest, leftMs), 0),
    },
    call,
  );
}

/** For how long an outcome is sent again after its lease is over, because the store could not be reached. */
const LONGEST_OUTAGE_MS = 3_600_000;

export interface RecordOptions {
  /** Once true, an outcome is only sent again while its lease lasts, so that a worker can stop during an outage. */
  readonly isStopping: () => boolean;
  /** Hears of the first failure that is not the last. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Repeats a settlement until it is answered. While the store cannot be reached, no lease expires (`store/expiry.ts`), so
 * what a run did is sent again also after its lease is over: the fence refuses it when another run has begun. Any other
 * error ends it with the leases.
 */
export function untilRecorded<Answer>(
  leases: readonly Lease[],
  clock: Clock,
  call: () => Promise<Answer>,
  { isStopping, onRetry }: RecordOptions,
): Promise<Answer> {
  const startedAt = clock.monotonic();
  let isOutage = false;
  const leasedMs = (): number => leases.reduce((longest, { leftMs }) => Math.max(longest, leftMs), 0);
  const outageMs = (): number => startedAt + LONGEST_OUTAGE_MS - clock.monotonic();
  return withRetries(
    clock,
    {
      policy: pauses,
      isTransient: (error) => {
        isOutage = error instanceof StoreUnavailableError || error instanceof StoreBusyError;
        return true;
      },
      leftMs: () => (isOutage && !isStopping() ? Math.max(leasedMs(), outageMs()) : leasedMs()),
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
