/** A mutant that no test can notice, because nothing that anybody can see is different. */
export interface Equivalent {
  readonly file: string;
  /** The line, without the spaces around it. */
  readonly line: string;
  readonly change: string;
  readonly why: string;
}

export const equivalents: readonly Equivalent[] = [];
