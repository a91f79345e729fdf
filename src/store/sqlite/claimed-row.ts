/** The columns that hold numbers, those of interned strings first. */
export const NUMBERS = [
  'queue',
  'home_queue',
  'resource',
  'name',
  'worker',
  'policy',
  'last_error',
  'seq',
  'lane',
  'priority',
  'runs',
  'attempts',
  'crashes',
  'given_back',
  'deferred_since',
  'snoozes',
  'enqueued_at',
  'due_at',
  'available_at',
  'first_started_at',
  'previous_delay_ms',
  'cancel_requested',
  'claimed_at',
  'lease_ends_at',
  'alone',
  'retry_queue',
] as const;
/** So many of them hold numbers of interned strings. */
export const STRINGS = 5;

export type NumberColumn = (typeof NUMBERS)[number];

/** A row as an array, which is quicker to read than an object: the numbers, the id, the payload, the note, the fingerprint, the limits, the trace. */
export type ClaimedRow = (number | string | null)[];
export const CLAIMED_COLUMNS: string = `${NUMBERS.join(', ')}, id, payload,
  CASE WHEN spent_at IS NOT NULL THEN json_object('at', spent_at, 'count', spent_count) END, fingerprint, limits, trace`;

/** Where each column stands in a row. */
export const AT: Readonly<Record<NumberColumn, number>> = Object.fromEntries(
  NUMBERS.map((column, index) => [column, index]),
) as Record<NumberColumn, number>;
export const ID: number = NUMBERS.length;
export const PAYLOAD: number = NUMBERS.length + 1;
/** `Spent` as JSON; null for nearly all jobs, which is why it is one value. */
export const SPENT: number = NUMBERS.length + 2;
/** Of its last failure; null for nearly all jobs. */
export const FINGERPRINT: number = NUMBERS.length + 3;
/** As `limitsText` writes them; null for none. */
export const LIMITS: number = NUMBERS.length + 4;
/** As `NewJob.trace` was; null for none. */
export const TRACE: number = NUMBERS.length + 5;
