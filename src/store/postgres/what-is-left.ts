/** What a call of the claim function found in one partition. */
export interface CallResult {
  /** How many due jobs were counted; null when the partition is not admissible. */
  readonly due: number | null;
  /** So many were counted at the most. */
  readonly most: number;
  readonly want: number;
  readonly taken: number;
  /** The range that was read is the missed one, which lies before the cursor's position (scan/scan-cursor.ts). */
  readonly isMissed: boolean;
}

export interface Left {
  /** How many more jobs the partition may give; infinite when that was not read. */
  readonly rest: number;
  /** Nothing more is due in the range that was read. */
  readonly isExhausted: boolean;
  /** It gave less than was wanted and counted, so other claims are emptying it: this claim asks it no more. */
  readonly isContended: boolean;
}

/** What a partition has left for the next call of the same claim. */
export function whatIsLeft({ due, most, want, taken, isMissed }: CallResult): Left {
  if (due === null) return { rest: 0, isExhausted: false, isContended: false };
  if (due > taken) return { rest: due - taken, isExhausted: false, isContended: taken < Math.min(want, due) };
  const isExhausted = due < most;
  // Beyond what was counted, and after a missed range, nothing was read yet.
  const isUnread = !isExhausted || isMissed;
  return { rest: isUnread ? Number.POSITIVE_INFINITY : 0, isExhausted, isContended: false };
}
