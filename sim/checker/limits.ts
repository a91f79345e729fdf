import type { LimitKey, LimitSettings, Rate } from '../../src/limit/limit.ts';
import type { ClaimRequest, LimitedClaim, LimitOverride, LimitWrite, NewJob } from '../../src/store/store.ts';
import type { Check } from './checker.ts';
import { isFor, type Model, type ModelJob } from './model.ts';

/*
 * Guarantee 15: what limits let start.
 *
 * The rules are worked out again from the documents. A key's concurrency and its limit's total are checked whenever a job
 * starts, by the settings of that moment: nothing else adds to what runs. A rate is checked twice: by counting the starts in
 * the window that ends with this one, since the last change of the rate, and by how starts are spread over a window.
 */

/** Sums of spaces are not exact, and a claim has whole milliseconds. */
const SLACK_MS = 1;

interface Start {
  readonly job: string;
  readonly run: number;
  readonly at: number;
}

/** The rate of a key: its starts since the rate was last changed, and when the next would come if all were evenly spread. */
interface Rated {
  text: string;
  starts: Start[];
  nextStartAt: number;
}

export class LimitModel {
  /** By limit or by limit and key, and then by who said it. */
  readonly #rules: Map<string, Partial<Record<LimitWrite['source'], LimitWrite['settings']>>> = new Map();
  readonly #rates: Map<string, Rated> = new Map();

  write(writes: readonly LimitWrite[], now: number): void {
    for (const { limit, key, source, settings } of writes) {
      const rated = [...this.#rates].map(([text, one]) => ({ ...keyOf(text), one }));
      const before = rated.map((of) => this.settings(of).rate);
      const name = JSON.stringify([limit, key]);
      this.#rules.set(name, { ...this.#rules.get(name), [source]: settings });
      for (const [index, of] of rated.entries()) change(of.one, before[index] ?? null, this.settings(of).rate, now);
    }
  }

  /** An operator's word comes before that of code, and of each the word about the key first. */
  settings({ limit, key }: LimitKey): LimitSettings {
    const ofLimit = this.#rules.get(JSON.stringify([limit, null]));
    const ofKey = this.#rules.get(JSON.stringify([limit, key]));
    const said: (LimitOverride | null | undefined)[] = [ofKey?.set, ofLimit?.set, ofKey?.code, ofLimit?.code];
    const first = <Name extends keyof LimitSettings>(name: Name): LimitSettings[Name] =>
      (said.find((one) => one?.[name] !== undefined)?.[name] ?? null) as LimitSettings[Name];
    return { concurrency: first('concurrency'), total: first('total'), rate: first('rate') };
  }

  /** A job is claimed. A suspect's trial asks no limit, but counts. */
  start(job: ModelJob, run: number, { model, now, expect }: Check): void {
    const { id } = job.made;
    for (const one of limitsOf(job)) {
      const what = `${JSON.stringify(one)} when ${id} started from ${job.lane}`;
      const settings = this.settings(one);
      const { concurrency, total, rate } = settings;
      const before = holders(model, one, job);
      const isAsked = job.lane !== 'suspect';
      expect(
        15,
        !isAsked || concurrency === null || before < concurrency,
        () => `${before} jobs held the ${concurrency} places of ${what}`,
      );
      const inTotal = holdersOfTotal(model, one, job);
      expect(
        15,
        !isAsked || total === null || inTotal < total,
        () => `${inTotal} jobs held the total of ${total} of ${what}`,
      );
      const rated = this.#rated(one, rate);
      if (rate === null) continue;
      const inWindow = rated.starts.filter(({ at }) => at > now - rate.perMs).length;
      expect(
        15,
        !isAsked || inWindow < rate.limit,
        () => `${inWindow} starts, of ${rate.limit}, were in the window of ${what}`,
      );
      const startsAt = earliest(rate, rated);
      expect(
        15,
        !isAsked || startsAt - SLACK_MS <= now,
        () => `the next start of ${what} was to come ${startsAt - now} ms later, evenly spread`,
      );
      rated.starts.push({ job: id, run, at: now });
      rated.nextStartAt = Math.max(rated.nextStartAt, now) + spaceOf(rate);
    }
  }

  /** A run that never began is handed back, and its start with it. */
  handedBack(job: ModelJob, now: number): void {
    for (const one of limitsOf(job)) {
      const { rate } = this.settings(one);
      const rated = this.#rated(one, rate);
      if (rate === null) continue;
      const held = rated.starts.find((start) => start.job === job.made.id && start.run === job.runs);
      // Started under another rate, it gives back what it did not pay; until all that is over, nothing is counted.
      if (held === undefined) rated.starts = [];
      else rated.starts.splice(rated.starts.indexOf(held), 1);
      const heldMs = now - (job.lease?.claimedAt ?? now);
      rated.nextStartAt -= Math.max(0, spaceOf(rate) - heldMs);
    }
  }

  /** Whether the settings let a waiting job start, and from when: null when another job has to end first. */
  startsAt(job: ModelJob, model: Model, isAhead = false): number | null {
    let latest = 0;
    for (const one of limitsOf(job)) {
      const { concurrency, total, rate } = isAhead ? ahead(this.settings(one)) : this.settings(one);
      if (isAhead && rate !== null) return null;
      if (concurrency !== null && holders(model, one, job) >= concurrency) return null;
      if (total !== null && holdersOfTotal(model, one, job) >= total) return null;
      if (rate === null) continue;
      latest = Math.max(latest, earliest(rate, this.#rated(one, rate)));
    }
    return latest;
  }

  /** `isAhead`: as a job that is claimed ahead. */
  hasRoom(job: ModelJob, model: Model, now: number, isAhead = false): boolean {
    const at = this.startsAt(job, model, isAhead);
    return at !== null && at + SLACK_MS <= now;
  }

  /** The live jobs of a key that keep a new job from being stored; null when none does. */
  refusedFor({ onLimit = [] }: NewJob, model: Model): readonly string[] | null {
    const full = onLimit.filter(({ action }) => action === 'cancel-newest').flatMap((one) => this.#fillers(one, model));
    return full.length === 0 ? null : full.map(({ made }) => made.id);
  }

  /** The new job is stored: of each full key, the job that was accepted first and never started makes way. */
  cancelOldest({ onLimit = [] }: NewJob, model: Model): void {
    for (const one of onLimit.filter(({ action }) => action === 'cancel-oldest')) {
      const unstarted = this.#fillers(one, model).filter(({ runs }) => runs === 0);
      const [oldest] = unstarted.sort((a, b) => a.seq - b.seq);
      if (oldest !== undefined) model.end(oldest, 'cancelled');
    }
  }

  /** The jobs of a key that wait and run, when they are as many as may run at once, and at least one. */
  #fillers(one: LimitKey, model: Model): ModelJob[] {
    const { concurrency } = this.settings(one);
    const live = model.all().filter((job) => hasKey(job, one) && ['waiting', 'running'].includes(job.state));
    return concurrency === null || live.length < concurrency ? [] : live;
  }

  /** The limits in which a job that starts now will keep its turn. */
  turnsOf(job: ModelJob): readonly string[] {
    return limitsOf(job)
      .filter((one) => this.settings(one).concurrency === 1)
      .map(({ limit }) => limit);
  }

  #rated({ limit, key }: LimitKey, rate: Rate | null): Rated {
    const name = JSON.stringify([limit, key]);
    const text = JSON.stringify(rate);
    const rated = this.#rates.get(name) ?? { text, starts: [], nextStartAt: 0 };
    if (rated.text !== text) Object.assign(rated, { text, starts: [] });
    this.#rates.set(name, rated);
    return rated;
  }
}

function keyOf(text: string): LimitKey {
  const [limit, key] = JSON.parse(text) as [string, string];
  return { limit, key };
}

/**
 * A key gets another rate: it owes as many starts as before, at the new space, and none without a rate; nothing is put off. Also
 * when the rate of before comes back, starts are counted from then on.
 */
function change(rated: Rated, before: Rate | null, after: Rate | null, now: number): void {
  if (JSON.stringify(before) !== JSON.stringify(after)) rated.starts = [];
  const aheadMs = Math.max(0, rated.nextStartAt - now);
  const owedMs = before === null || after === null ? 0 : (aheadMs / spaceOf(before)) * spaceOf(after);
  if (owedMs < aheadMs) rated.nextStartAt = now + owedMs;
}

/** Jobs that are claimed ahead may have half of the places. */
function ahead({ concurrency, total, rate }: LimitSettings): LimitSettings {
  const half = (places: number | null): number | null => (places === null ? null : Math.floor(places / 2));
  return { concurrency: half(concurrency), total: half(total), rate };
}

export function limitsOf({ made: { limits = [] } }: ModelJob): readonly LimitKey[] {
  return limits;
}

/** Whether `claimLimited` or `claimGated` has to take it: the trial of a suspect asks no limit. */
export function isLimited(job: ModelJob): boolean {
  return job.lane !== 'suspect' && limitsOf(job).length > 0;
}

/** A claim says when the next job may start by time alone; a worker sleeps until then. */
export function checkNextAt(
  request: ClaimRequest,
  { nextAt }: LimitedClaim,
  { model, now, expect }: Pick<Check, 'model' | 'now' | 'expect'>,
): void {
  const capped = new Set(request.queues.filter((quota) => quota.maxRetriesInFlight !== null).map(({ queue }) => queue));
  for (const job of model.all().filter((one) => one.state === 'waiting' && isLimited(one))) {
    const isAsked = request.queues.some(({ queue }) => queue === job.queue) && isFor(job, request);
    const isCapped = job.lane === 'retry' && capped.has(job.queue);
    if (!isAsked || isCapped || model.isHeld(job, now) || model.gates.isGated(job, now)) continue;
    const startsAt = model.limits.startsAt(job, model);
    if (startsAt === null) continue;
    const at = Math.max(now, job.dueAt, startsAt) + SLACK_MS;
    expect(
      15,
      nextAt !== null && nextAt <= at,
      () => `${job.made.id} may start at ${at}, but a claim at ${now} says that the next comes at ${nextAt}`,
    );
  }
}

/** Those that hold a place of a key against this job; one that keeps its turn waits among retries. */
function holders(model: Model, one: LimitKey, job: ModelJob): number {
  return model.all().filter((other) => {
    if (other === job || !hasKey(other, one)) return false;
    if (other.state === 'running') return true;
    if (other.state !== 'waiting') return false;
    return other.lane === 'suspect' || (job.lane !== 'retry' && other.turns.includes(one.limit));
  }).length;
}

function holdersOfTotal(model: Model, { limit }: LimitKey, job: ModelJob): number {
  return model
    .all()
    .filter((other) => other !== job && limitsOf(other).some((one) => one.limit === limit))
    .filter(({ state, lane }) => state === 'running' || (state === 'waiting' && lane === 'suspect')).length;
}

function hasKey(job: ModelJob, { limit, key }: LimitKey): boolean {
  return limitsOf(job).some((one) => one.limit === limit && one.key === key);
}

/** When a start may come: so many at once after a pause, the others evenly spread. */
function earliest(rate: Rate, { nextStartAt }: Rated): number {
  return nextStartAt - (rate.burst - 1) * spaceOf(rate);
}

function spaceOf({ limit, perMs, burst }: Rate): number {
  return perMs / (limit - burst + 1);
}
