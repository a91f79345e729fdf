import {
  ALL_NAMES,
  addCounts,
  addRun,
  bucketOf,
  byRunTime,
  type EndedRun,
  HISTORY_NAME_LENGTH,
  HISTORY_NAMES,
  type HistoryRequest,
  historySteps,
  type MutableCounts,
  noCounts,
  type StoreHistory,
  startOf,
} from '../history.ts';

interface Bucket {
  readonly stepMs: number;
  readonly at: number;
  readonly name: string;
  readonly counts: MutableCounts;
}

/** Runs are counted when they end: there is nothing to roll up. */
export class History {
  readonly #buckets: Map<string, Bucket> = new Map();
  readonly #names: Set<string> = new Set();

  add(run: EndedRun): void {
    const name = run.name.slice(0, HISTORY_NAME_LENGTH);
    if (this.#names.size < HISTORY_NAMES) this.#names.add(name);
    for (const { stepMs } of historySteps) {
      const at = startOf(run.at, stepMs);
      addRun(this.#bucket(stepMs, at, ALL_NAMES).counts, run);
      if (this.#names.has(name)) addRun(this.#bucket(stepMs, at, name).counts, run);
    }
  }

  read({ from, to, stepMs, name }: HistoryRequest, now: number): StoreHistory {
    const stored = [...this.#buckets.values()].filter(
      (bucket) => bucket.stepMs === bucketOf(stepMs) && bucket.at >= from && bucket.at < to,
    );
    const sums = <Key>(buckets: readonly Bucket[], keyOf: (bucket: Bucket) => Key): [Key, MutableCounts][] =>
      [...Map.groupBy(buckets, keyOf)].map(([key, own]) => {
        const sum = noCounts();
        for (const { counts } of own) addCounts(sum, counts);
        return [key, sum];
      });
    const wanted = stored.filter((bucket) => bucket.name === (name ?? ALL_NAMES).slice(0, HISTORY_NAME_LENGTH));
    const named = name === undefined ? stored.filter((bucket) => bucket.name !== ALL_NAMES) : [];
    return {
      now,
      upTo: now,
      points: sums(wanted, ({ at }) => startOf(at, stepMs))
        .map(([at, counts]) => ({ at, ...counts }))
        .sort((a, b) => a.at - b.at),
      names: sums(named, (bucket) => bucket.name)
        .map(([of, counts]) => ({ name: of, ...counts }))
        .sort(byRunTime),
    };
  }

  prune(now: number): void {
    for (const { stepMs, keptMs } of historySteps) {
      for (const [key, bucket] of this.#buckets) {
        if (bucket.stepMs === stepMs && bucket.at < now - keptMs) this.#buckets.delete(key);
      }
    }
  }

  #bucket(stepMs: number, at: number, name: string): Bucket {
    const key = JSON.stringify([stepMs, at, name]);
    const bucket = this.#buckets.get(key) ?? { stepMs, at, name, counts: noCounts() };
    this.#buckets.set(key, bucket);
    return bucket;
  }
}
