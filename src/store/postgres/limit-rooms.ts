import {
  type KeyUse,
  keepsTurn,
  type LimitKey,
  type LimitRules,
  type LimitSettings,
  limitsText,
  settingsFor,
} from '../../limit/limit.ts';
import { afterStarts } from '../../limit/rate.ts';
import { roomAt, roomOf, roomWithin } from '../../limit/room.ts';
import type { LimitOverride } from '../store.ts';
import { plain } from './connection/arrays.ts';
import type { Partition } from './partitions.ts';

/** What the function `read_uses` answers of a limit, and of a key: see sql/limits.ts. Rules are JSON. */
export type SettingsRow = [
  name: string,
  version: number,
  code: string | null,
  operator: string | null,
  total: number | null,
];
export type UseRow = [
  limit: string,
  key: string,
  code: string | null,
  operator: string | null,
  running: number,
  waiting: number,
  suspects: number,
  nextStartAt: number,
];

/** A key as it was read, and what the claim has given it since. */
interface Use extends LimitKey {
  /** Its position among those that the second call is given. */
  readonly ord: number;
  readonly version: number;
  readonly settings: LimitSettings;
  readonly read: KeyUse;
  readonly ofLimit: { taken: number };
  taken: number;
}

/** What keeps the jobs of a partition from starting: until a time, while so many hold the key, or until a job of any key ends. */
export interface Blocked {
  readonly by: number;
  readonly until: number | null;
  readonly bound: number | null;
}

export function toRules(code: string | null, operator: string | null): LimitRules {
  const parse = (text: string | null): LimitOverride | null =>
    text === null ? null : (JSON.parse(text) as LimitOverride);
  return { code: parse(code), set: parse(operator) };
}

/** How many jobs the limits of partitions let start, in the course of one claim. */
export class LimitRooms {
  readonly #uses: Map<string, Use> = new Map();
  readonly #now: number;

  constructor(settings: readonly SettingsRow[], uses: readonly UseRow[], now: number) {
    this.#now = now;
    const limits = new Map(settings.map((row) => [row[0], { row, taken: 0 }]));
    for (const [index, [limit, key, code, operator, running, waiting, suspects, nextStartAt]] of uses.entries()) {
      const ofLimit = limits.get(limit) ?? { row: null, taken: 0 };
      limits.set(limit, ofLimit as { row: SettingsRow; taken: number });
      const [, version, limitCode, limitOperator, total] = ofLimit.row ?? [limit, 0, null, null, null];
      this.#uses.set(limitsText([{ limit, key }]), {
        ord: index + 1,
        limit,
        key,
        version,
        settings: settingsFor(toRules(limitCode, limitOperator), toRules(code, operator)),
        read: { running, waiting, suspects, total: total ?? 0, nextStartAt },
        ofLimit,
        taken: 0,
      });
    }
  }

  /** How many of `count` jobs of a partition may start: see `roomWithin`. */
  room(partition: Partition, count: number, places?: number): number {
    const each = this.#of(partition).map((use) => ({ settings: use.settings, use: this.#after(use) }));
    return roomWithin(each, partition.lane, this.#now, count, places);
  }

  take(partition: Partition, count: number): void {
    for (const use of this.#of(partition)) {
      use.taken += count;
      use.ofLimit.taken += count;
    }
  }

  /** Null when one more may start. */
  blocked(partition: Partition): Blocked | null {
    let latest: Blocked | null = null;
    let hasNoTime = false;
    for (const use of this.#of(partition)) {
      const { settings, ord } = use;
      const after = this.#after(use);
      if (roomOf(settings, after, partition.lane, this.#now) > 0) continue;
      if (roomOf({ ...settings, total: null, rate: null }, after, partition.lane, this.#now) === 0) {
        return { by: ord, until: null, bound: settings.concurrency };
      }
      const until = roomAt(settings, after, partition.lane);
      if (until === null) hasNoTime = true;
      else if (latest === null || until > (latest.until as number)) latest = { by: ord, until, bound: null };
    }
    return hasNoTime ? { by: 0, until: null, bound: null } : latest;
  }

  /** Those of a partition's limits that let none start. */
  full(partition: Partition): string[] {
    const isFull = (use: Use): boolean => roomOf(use.settings, this.#after(use), partition.lane, this.#now) === 0;
    return this.#of(partition)
      .filter(isFull)
      .map(({ limit }) => limit);
  }

  /**
   * The positions of those of these partitions' keys of which more jobs may run, if only from the lane of retries. Not by their
   * rate: a partition that is parked waits for a place, and until it is read no claim knows when its jobs may start.
   */
  free(partitions: readonly Partition[]): number[] {
    return [...new Set(partitions.flatMap((partition) => this.#of(partition)))]
      .filter((use) => roomOf({ ...use.settings, total: null, rate: null }, this.#after(use), 'retry', this.#now) > 0)
      .map(({ ord }) => ord);
  }

  /** The positions of a partition's keys, as an array literal. */
  usesOf(partition: Partition): string {
    return plain(this.#of(partition).map(({ ord }) => ord));
  }

  /** The keys of these partitions as JSON: what was read of them, and what starts do to them. */
  given(partitions: readonly Partition[]): string {
    const uses = new Set(partitions.flatMap((partition) => this.#of(partition)));
    return JSON.stringify(
      [...uses].map(({ ord, limit, key, version, settings, read, taken, ofLimit }) => ({
        ord,
        limit_name: limit,
        key,
        takes: taken > 0,
        version,
        holding: read.running + read.waiting,
        most_holding: mostInUse(settings.concurrency, read.running + read.waiting, taken),
        most_holding_retries: mostInUse(settings.concurrency, read.running + read.suspects, taken),
        most_total: mostInUse(settings.total, read.total, ofLimit.taken),
        next: read.nextStartAt,
        keeps_turn: keepsTurn(settings, 'fresh'),
        spacing: settings.rate === null ? 0 : afterStarts(settings.rate, 0, 0, 1),
      })),
    );
  }

  #of({ limits }: Partition): Use[] {
    return limits.flatMap((one) => this.#uses.get(limitsText([one])) ?? []);
  }

  #after({ settings: { rate }, read, taken, ofLimit }: Use): KeyUse {
    return {
      running: read.running + taken,
      waiting: read.waiting,
      suspects: read.suspects,
      total: read.total + ofLimit.taken,
      nextStartAt: rate === null ? read.nextStartAt : afterStarts(rate, read.nextStartAt, this.#now, taken),
    };
  }
}

/** So much may be in use when the jobs are taken: what was read, or more where they still fit. Null for any amount. */
function mostInUse(bound: number | null, read: number, taken: number): number | null {
  return bound === null ? null : Math.max(read, bound - taken);
}
