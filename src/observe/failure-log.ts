import type { Clock, Timer } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import type { Logger, LogLevel } from './log.ts';

/** For so long after an entry, those like it are counted instead of written. */
const QUIET_MS = 60_000;
/** More than there are kinds of failure in a sound queue. Beyond it, whatever is new shares one group. */
const MOST_GROUPS = 1_000;
const OTHERS = 'others';

export interface FailureEntry {
  readonly level: LogLevel;
  readonly message: string;
  /** What entries must have in common to be alike. */
  readonly group: string;
  readonly fields: Record<string, unknown>;
  /** Those of the fields that say what the group is. */
  readonly common: Record<string, unknown>;
}

interface Group {
  readonly endsAt: number;
  readonly first: FailureEntry;
  more: number;
}

/**
 * Writes failures to the log without flooding it: the first of its kind is written at once, those like it are counted for a
 * minute, and then their number is written. 100,000 jobs that die of one outage leave two entries a minute.
 *
 * A group exists from its first entry until a minute has passed without another. One timer serves all groups; it is set
 * while there are groups, so a queue without failures has none.
 */
export class FailureLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  /** In the order in which they end. */
  readonly #groups: Map<string, Group> = new Map();
  #timer: Timer | null = null;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  write(entry: FailureEntry): void {
    const key = `${entry.level} ${entry.group}`;
    const group = this.#groups.get(key) ?? (this.#groups.size < MOST_GROUPS ? undefined : this.#groups.get(OTHERS));
    if (group !== undefined) {
      group.more++;
      return;
    }
    this.#log[entry.level](entry.message, entry.fields);
    this.#begin(this.#groups.size < MOST_GROUPS - 1 ? key : OTHERS, entry);
  }

  /** Writes the counts that are left, and leaves no timer behind. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const group of this.#groups.values()) this.#summarise(group);
    this.#groups.clear();
  }

  #begin(key: string, first: FailureEntry): void {
    this.#groups.set(key, { endsAt: this.#clock.monotonic() + QUIET_MS, first, more: 0 });
    this.#timer ??= this.#clock.after(QUIET_MS, () => this.#endGroups());
  }

  #endGroups(): void {
    this.#timer = null;
    const now = this.#clock.monotonic();
    for (const [key, group] of this.#groups) {
      if (group.endsAt > now) {
        this.#timer = this.#clock.after(group.endsAt - now, () => this.#endGroups());
        return;
      }
      this.#groups.delete(key);
      // It goes on: the next minute is counted as well.
      if (this.#summarise(group)) this.#begin(key, group.first);
    }
  }

  #summarise({ first, more }: Group): boolean {
    if (more === 0) return false;
    const count = more.toLocaleString('en-US');
    const message = `${first.message}: and ${count} more like it within ${formatDuration(QUIET_MS)}`;
    this.#log[first.level](message, { ...first.common, more });
    return true;
  }
}
