import type { RetryPolicy } from '../retry/policy.ts';
import type { ClassifyRule } from '../retry/rules.ts';
import { fewerAttempts, moreAttempts } from './attempts.ts';
import { laterBackoff, withBackoff } from './backoff.ts';
import { totalBound } from './bounds.ts';
import { type Errors, neverRecovering } from './classification.ts';
import type { Figures, Sample } from './figures.ts';
import type { Life } from './lives.ts';
import { livesInOutages } from './met-outage.ts';
import { type Change, type Effect, effectOf, endingAt } from './replay.ts';
import {
  backoffText,
  classificationText,
  fewerText,
  moreText,
  tooFewBeyondText,
  tooFewRetriedText,
  tooFewTriesText,
} from './words.ts';

/** A change of a policy, and what it would have done to the jobs of the ledger. */
export interface Proposal extends Figures {
  readonly setting: 'maxAttempts' | 'backoff' | 'classification' | 'resource';
  readonly maxAttempts?: number;
  readonly backoff?: RetryPolicy['backoff'];
  /** Of the error that never recovers; null when no rule tells it from others. */
  readonly rule?: ClassifyRule | null;
  readonly fingerprint?: string;
  readonly text: string;
  /** Why it should not be followed: its replay was worse than the present policy. */
  readonly withdrawn?: string;
}

/** What is proposed, and what too few jobs have shown to propose it. */
export interface Findings {
  readonly proposals: Proposal[];
  readonly tooFew: string[];
  /** The lives that are evidence for fewer attempts: no outage and no permanent error made them fail. */
  readonly counted: readonly Life[];
}

/** Lost jobs of which none was seen in a sample: at most so many times the factor, with a probability of 95 of 100. */
const RULE_OF_THREE = 3;
/** What fewer jobs suggest is not worth a line. */
const LEAST_NOTED = 30;

export function findingsOf(lives: readonly Life[], policy: RetryPolicy, errors: Errors, sample: Sample): Findings {
  const [proposals, tooFew]: [Proposal[], string[]] = [[], []];
  const permanent = new Set<string>();
  for (const found of neverRecovering(lives, errors)) {
    const { group, evidence, rule } = found;
    if (!evidence.isEnough) {
      if (evidence.jobs >= LEAST_NOTED) tooFew.push(tooFewRetriedText(found, errors[group], sample));
      continue;
    }
    permanent.add(group);
    const figures = figuresOf(effectOf(lives, endingAt(Number.POSITIVE_INFINITY, new Set([group]))), sample);
    const text = classificationText(found, errors[group], figures, sample);
    proposals.push({ setting: 'classification', fingerprint: group, rule, ...figures, text });
  }
  const others = lives.filter(({ runs }) => !runs.some(({ group }) => group !== null && permanent.has(group)));
  const inOutages = livesInOutages(lives, errors);
  const counted = others.filter((life) => !inOutages.has(life));
  const later = laterBackoff(others, policy, inOutages);
  if (later !== null) {
    const figures = figuresOf(effectOf(others, withBackoff(later, policy.jitter)), sample);
    const { backoff, maxAttempts } = later;
    proposals.push({ setting: 'backoff', backoff, maxAttempts, ...figures, text: backoffText(later, figures, sample) });
    return { proposals, tooFew, counted };
  }
  const fewer = fewerAttempts(lives, others, inOutages);
  if (fewer?.evidence.isEnough) {
    const { maxAttempts } = fewer;
    const figures = figuresOf(effectOf(counted, endingAt(maxAttempts)), sample);
    proposals.push({ setting: 'maxAttempts', maxAttempts, ...figures, text: fewerText(fewer, figures, sample) });
    return { proposals, tooFew, counted };
  }
  if (fewer !== null && fewer.evidence.jobs + fewer.inOutage >= LEAST_NOTED)
    tooFew.push(tooFewBeyondText(fewer, sample));
  const more = moreAttempts(others, policy);
  if (more?.isEnough) {
    const { maxAttempts, gained, moreRuns } = more;
    const figures = {
      ...figuresOf(effectOf([], unchanged), sample),
      runsSaved: -Math.round(moreRuns * sample.factor),
      jobsGained: Math.round(gained * sample.factor),
    };
    proposals.push({ setting: 'maxAttempts', maxAttempts, ...figures, text: moreText(more, figures, sample) });
  } else if (more !== null && more.exhausted >= LEAST_NOTED) tooFew.push(tooFewTriesText(more, sample));
  return { proposals, tooFew, counted };
}

const unchanged: Change = ({ runs, completed }) => ({ runs: runs.length, completes: completed });

export function figuresOf(
  { runsSaved, runMsSaved, jobsLost, savedByPart }: Effect,
  { factor, parts }: Sample,
): Figures {
  const saved = [...parts].map(([part, jobs]) => ({ jobs, amount: savedByPart.get(part) ?? 0 }));
  const atMost = factor > 1 ? factor * (jobsLost + RULE_OF_THREE) : jobsLost;
  return {
    runsSaved: Math.round(runsSaved * factor),
    runsSavedBound: Math.round(totalBound(saved, factor)),
    runMsSaved: Math.round(runMsSaved * factor),
    jobsLost: Math.round(jobsLost * factor),
    jobsLostAtMost: Math.round(atMost),
    jobsGained: 0,
  };
}
