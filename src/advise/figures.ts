/** What a change of a policy would have done. */
export interface Figures {
  /** Below 0 when it takes more runs. */
  readonly runsSaved: number;
  /** Give or take so many, 95 times of 100, when a part of the ledger was read. */
  readonly runsSavedBound: number;
  readonly runMsSaved: number;
  readonly jobsLost: number;
  /** With a probability of 95 of 100. */
  readonly jobsLostAtMost: number;
  readonly jobsGained: number;
}

/** How many times more jobs there are than were read. */
export interface Sample {
  readonly factor: number;
  /** How many jobs, of all names, were read of each part that was drawn. */
  readonly parts: ReadonlyMap<number | null, number>;
  readonly spanMs: number;
}

/** What another number of attempts would have saved and lost. */
export interface Choice extends Pick<Figures, 'runsSaved' | 'jobsLost'> {
  readonly maxAttempts: number;
}
