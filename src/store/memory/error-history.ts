import {
  ERROR_SERIES,
  ERROR_SERIES_KEPT,
  ERROR_SERIES_SAFE_MS,
  type ErrorHistoryRequest,
  type ErrorHistoryRow,
  errorHistorySteps,
  type StoreErrorHistory,
  toErrorSeries,
} from '../error-history.ts';
import { bucketOf, startOf } from '../history.ts';
import type { Row } from './row.ts';

interface Bucket {
  readonly stepMs: number;
  readonly at: number;
  failures: number;
  dead: number;
}

interface Series {
  readonly fingerprint: string;
  readonly queue: string;
  readonly name: string;
  seenAt: number;
  buckets: Bucket[];
}

/** Failures are counted when they are settled: there is nothing to roll up. */
export class ErrorHistory {
  readonly #series: Map<string, Series> = new Map();

  add(fingerprint: string, { homeQueue: queue, name }: Row, isDead: boolean, now: number): void {
    const key = JSON.stringify([fingerprint, queue, name]);
    let series = this.#series.get(key);
    if (series === undefined) {
      if (this.#series.size >= ERROR_SERIES) return;
      series = { fingerprint, queue, name, seenAt: now, buckets: [] };
      this.#series.set(key, series);
    }
    series.seenAt = now;
    for (const { stepMs } of errorHistorySteps) {
      const at = startOf(now, stepMs);
      let bucket = series.buckets.find((one) => one.stepMs === stepMs && one.at === at);
      if (bucket === undefined) {
        bucket = { stepMs, at, failures: 0, dead: 0 };
        // The newest first, because that is the one that is looked for.
        series.buckets.unshift(bucket);
      }
      bucket.failures++;
      if (isDead) bucket.dead++;
    }
  }

  read(request: ErrorHistoryRequest, now: number): StoreErrorHistory {
    const { from, to, stepMs, fingerprint = '', name, queue } = request;
    const size = bucketOf(stepMs, errorHistorySteps);
    const rows = new Map<string, ErrorHistoryRow>();
    for (const [key, { buckets, ...series }] of this.#series) {
      if (!series.fingerprint.startsWith(fingerprint)) continue;
      if ((name ?? series.name) !== series.name || (queue ?? series.queue) !== series.queue) continue;
      for (const bucket of buckets.filter((one) => one.stepMs === size && one.at >= from && one.at < to)) {
        const at = startOf(bucket.at, stepMs);
        const { failures, dead } = rows.get(`${at} ${key}`) ?? { failures: 0, dead: 0 };
        const sum = { failures: failures + bucket.failures, dead: dead + bucket.dead };
        rows.set(`${at} ${key}`, { ...series, at, ...sum });
      }
    }
    return { now, upTo: now, series: toErrorSeries([...rows.values()]) };
  }

  prune(now: number): void {
    const [, hours] = errorHistorySteps;
    const keptMs = new Map(errorHistorySteps.map((step) => [step.stepMs, step.keptMs]));
    const bySeen = [...this.#series].sort(([, a], [, b]) => b.seenAt - a.seenAt);
    for (const [place, [key, series]] of bySeen.entries()) {
      series.buckets = series.buckets.filter(({ stepMs, at }) => at >= now - (keptMs.get(stepMs) ?? 0));
      const leastMs = place < ERROR_SERIES_KEPT ? hours.keptMs : ERROR_SERIES_SAFE_MS;
      if (series.seenAt < now - leastMs) this.#series.delete(key);
    }
  }
}
