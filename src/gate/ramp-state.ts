/** The ramp of a gate, as its state keeps it. */
export interface Ramp {
  /** Starts per second, and what no cut goes below. */
  readonly limit: number;
  readonly base: number;
  readonly tat: number;
  /** This step: its begin and its outcomes. */
  readonly stepAt: number;
  readonly alive: number;
  readonly environment: number;
  readonly slowestMs: number;
  /** The highest limit at which a step was healthy. */
  readonly healthyLimit: number;
  /** The share of failures that does not depend on the rate. */
  readonly background: number;
  /** Cuts in a row; the share of failures and the limit before the first of them. */
  readonly cuts: number;
  readonly cutShare: number;
  readonly cutLimit: number;
  /** Where trouble began; 0 when it never did. */
  readonly top: number;
  /** Where the cubic way back begins. */
  readonly cutAt: number;
  /** When the rate was last the limit. */
  readonly boundAt: number;
  /** When trouble ended, or the ramp began. */
  readonly healthySince: number;
  /** Since when the limit is at the ceiling; 0 when it is not. */
  readonly ceilingSince: number;
}
