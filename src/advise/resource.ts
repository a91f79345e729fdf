import { type Errors, isEnvironment } from './classification.ts';
import type { Figures, Sample } from './figures.ts';
import type { Life } from './lives.ts';
import { isWithin } from './met-outage.ts';
import type { LedgerOutage } from './outage.ts';
import type { Proposal } from './proposals.ts';
import { resourceText } from './words.ts';

/** Fewer jobs that died are no reason to change a definition. */
const LEAST_DIED = 5;
const noFigures: Figures = {
  runsSaved: 0,
  runsSavedBound: 0,
  runMsSaved: 0,
  jobsLost: 0,
  jobsLostAtMost: 0,
  jobsGained: 0,
};

/**
 * A resource, where jobs died in the outage with errors of the environment and no gate kept their attempts. It is about what
 * happened, and not about how likely it is: one outage is enough.
 */
export function resourceProposals(
  lives: readonly Life[],
  outage: LedgerOutage | null,
  errors: Errors,
  { factor }: Sample,
): Proposal[] {
  if (outage?.gate !== 'none') return [];
  const died = lives.filter(({ completed, runs }) => {
    const last = runs.at(-1);
    return !completed && last?.group && isWithin(outage, last.startedAt) && isEnvironment(errors[last.group]);
  }).length;
  if (died < LEAST_DIED) return [];
  const jobsGained = Math.round(died * factor);
  return [{ setting: 'resource', ...noFigures, jobsGained, text: resourceText(outage, jobsGained) }];
}
