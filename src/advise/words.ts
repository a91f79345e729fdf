import { formatDuration, span } from '../duration.ts';
import type { StoredError } from '../retry/outcome.ts';
import type { FewerAttempts, MoreAttempts } from './attempts.ts';
import type { LaterBackoff } from './backoff.ts';
import { NEEDED, NEEDED_HOURS } from './bounds.ts';
import type { NeverRecovers } from './classification.ts';
import type { Choice, Figures, Sample } from './figures.ts';
import type { OutageSpan } from './outage.ts';
import type { Evidence } from './tally.ts';

/* Advice in sentences, each with its figures. */

export function counted(amount: number): string {
  return Math.round(amount).toLocaleString('en-US');
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toPrecision(2)} %`;
}

export function fewerText(fewer: FewerAttempts, figures: Figures, sample: Sample): string {
  return `${neverBeyond(fewer, sample)}: maxAttempts ${fewer.maxAttempts} ${wouldHave(figures, sample)}.`;
}

export function tooFewBeyondText(fewer: FewerAttempts, sample: Sample): string {
  return `${neverBeyond(fewer, sample)}: too few to propose fewer attempts, ${missing(fewer.evidence)}.`;
}

function neverBeyond({ maxAttempts, last, evidence, inOutage }: FewerAttempts, sample: Sample): string {
  const first = maxAttempts + 1;
  const attempts = first === last ? `attempt ${first}` : `attempts ${first}-${last}`;
  const leftOut =
    inOutage === 0 ? '' : ` (${counted(inOutage)} more failed in an outage: they are no evidence, and are left out)`;
  return `${attempts} never succeeded in ${span(sample.spanMs)}, tried by ${counted(evidence.jobs)} jobs${read(sample)}${leftOut}`;
}

function missing({ jobs, hours }: Evidence): string {
  return jobs < NEEDED
    ? `${counted(jobs)} of ${counted(NEEDED)} jobs needed`
    : `they failed in ${hours} of ${NEEDED_HOURS} different hours needed`;
}

export function moreText(
  { maxAttempts, share, tried, exhausted }: MoreAttempts,
  figures: Figures,
  sample: Sample,
): string {
  return `the last attempt still succeeded ${percent(share)} of the time (${counted(tried)} jobs${read(sample)}), and ${counted(exhausted * sample.factor)} jobs were exhausted: if further attempts succeed as often, maxAttempts ${maxAttempts} would have brought about ${counted(figures.jobsGained)} of them through, for about ${counted(-figures.runsSaved)} more runs.`;
}

export function tooFewTriesText({ share, tried, exhausted }: MoreAttempts, sample: Sample): string {
  return `the last attempt still succeeded ${percent(share)} of the time, and ${counted(exhausted * sample.factor)} jobs were exhausted: too few tries${read(sample)} to propose more attempts, ${counted(tried)} of ${counted(NEEDED)} needed.`;
}

export function resourceText({ from, until }: OutageSpan, died: number): string {
  const at = new Date(from).toISOString().slice(0, 16).replace('T', ' ');
  return `name a resource: ${counted(died)} jobs died in the outage of ${span(until - from)} from ${at} UTC, because no gate kept their attempts. With resource: 'NAME' they wait until the dependency is back.`;
}

export function backoffText(
  { backoff, maxAttempts, neverUpTo, jobs, fromMs, toMs }: LaterBackoff,
  figures: Figures,
  sample: Sample,
): string {
  const attempts = neverUpTo === 2 ? 'attempt 2' : `attempts 2-${neverUpTo}`;
  const { baseMs, maxMs } = backoff;
  return `${attempts} never succeeded in ${span(sample.spanMs)}, tried by ${counted(jobs)} jobs${read(sample)}; jobs recovered from ${span(fromMs)} to ${span(toMs)} after their first failure: base ${formatDuration(baseMs)}, max ${formatDuration(maxMs)} and maxAttempts ${maxAttempts} ${wouldHave(figures, sample)}.`;
}

export function classificationText(
  { evidence, rule }: NeverRecovers,
  error: StoredError | undefined,
  figures: Figures,
  sample: Sample,
): string {
  const change =
    rule === null
      ? 'Throwing Unrecoverable instead'
      : `rules: [${JSON.stringify(rule)
          .replaceAll(/"(\w+)":/g, ' $1: ')
          .replaceAll(',', ',')
          .replaceAll('"', "'")
          .replace('}', ' }')}]`;
  return `no job ever completed after ${errorText(error)}, though ${counted(evidence.jobs)} were retried${read(sample)}: it is permanent. ${change} ${wouldHave(figures, sample)}.`;
}

export function tooFewRetriedText({ evidence }: NeverRecovers, error: StoredError | undefined, sample: Sample): string {
  return `no job completed after ${errorText(error)}, though ${counted(evidence.jobs)} were retried${read(sample)}: too few to call it permanent, ${missing(evidence)}.`;
}

export function errorText(error: Pick<StoredError, 'name' | 'message'> | null | undefined): string {
  if (!error) return 'a failure without an error';
  const { name, message } = error;
  return `${name}: ${message.length > 60 ? `${message.slice(0, 60).toWellFormed()}...` : message}`;
}

export function tooSmallText({ jobs, hours }: Evidence, sample: Sample): string {
  if (jobs < NEEDED) {
    return `only ${counted(jobs)} jobs${read(sample)} were retried. At least ${counted(NEEDED)} are needed to know that fewer than 1 in 100 of them would be lost: nothing is proposed.`;
  }
  return `all of its ${counted(jobs)} retried jobs failed within ${hours === 1 ? 'one hour' : `${hours} different hours`}. At least ${NEEDED_HOURS} are needed, because jobs that fail together say little about other times: nothing is proposed.`;
}

/** The least attempts that would have lost few jobs, where the fewest that lose none are many. */
export function choiceText({ maxAttempts, runsSaved, jobsLost }: Choice, failed: number): string {
  return `maxAttempts ${maxAttempts} would have saved ${counted(runsSaved)} runs and lost ${counted(jobsLost)} jobs, ${percent(jobsLost / failed)} of those that failed.`;
}

function read({ factor }: Sample): string {
  return factor > 1 ? ' of the sample' : '';
}

function wouldHave(figures: Figures, { factor }: Sample): string {
  const { runsSaved, runsSavedBound, runMsSaved, jobsLost, jobsLostAtMost } = figures;
  const time = runMsSaved > 0 ? `, ${span(runMsSaved)} of run time,` : '';
  if (factor <= 1) return `would have saved ${counted(runsSaved)} runs${time} and lost ${counted(jobsLost)} jobs`;
  return `would have saved about ${counted(runsSaved)} runs (± ${counted(runsSavedBound)})${time} and lost ${jobsLost === 0 ? 'no job of the sample' : `about ${counted(jobsLost)} jobs`} (at most ${counted(jobsLostAtMost)} of all, 95 % sure)`;
}
