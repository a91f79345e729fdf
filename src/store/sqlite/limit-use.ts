import type { Lane } from '../../job.ts';
import { type KeyUse, keepsTurn, type LimitKey, type LimitSettings, settingsFor } from '../../limit/limit.ts';
import { afterStarts } from '../../limit/rate.ts';
import { roomAt, roomOf, roomWithin } from '../../limit/room.ts';
import type { StoredKey } from './limit-keys.ts';
import { readNextStart, readRules, readSettings, writeNextStart } from './limit-rules.ts';
import { mayHoldSlot, SLOT, takeSlot } from './limit-slots.ts';
import type { Wait } from './partitions.ts';
import { NEVER } from './restrictions.ts';
import type { Session } from './session.ts';

const USE = `
  SELECT count(*) FILTER (WHERE state = ${SLOT.running}) AS running,
    count(*) FILTER (WHERE state <> ${SLOT.running}) AS waiting,
    count(*) FILTER (WHERE state = ${SLOT.suspect}) AS suspects
  FROM limit_slots WHERE name = ? AND key = ?`;
/* By this index, because jobs that keep their turn may be as many as there are keys. */
const TOTAL = 'SELECT count(*) AS total FROM limit_slots INDEXED BY limit_slots_total WHERE name = ? AND state > 0';
const SLOT_OF = 'SELECT state FROM limit_slots WHERE name = ? AND key = ? AND seq = ?';

const noUse = { running: 0, waiting: 0, suspects: 0 };

interface KeyState {
  readonly settings: LimitSettings;
  running: number;
  waiting: number;
  suspects: number;
  nextStartAt: number;
}

/** What the keys of limits have in use, as one claim sees it: read once, then counted along with what the claim takes. */
export class LimitUse {
  readonly #session: Session;
  readonly #keys: Map<string, KeyState> = new Map();
  readonly #totals: Map<string, number> = new Map();
  /** Null for a limit without a total: then what runs is not counted. */
  readonly #bounds: Map<string, number | null> = new Map();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Limits as they are stored. */
  parse(text: string): readonly StoredKey[] {
    return this.#session.limitTexts.parse(text);
  }

  /** How many of `count` jobs with these limits may start now: see `roomWithin`. */
  room(limits: readonly StoredKey[], lane: Lane, count: number, places?: number): number {
    const each = limits.map((one) => ({ settings: this.#key(one).settings, use: this.#use(one) }));
    return roomWithin(each, lane, this.#session.now, count, places);
  }

  /** Until when none of them may start, and because of which key; null when one may, or when the total of a limit is full. */
  waitOf(limits: readonly StoredKey[], lane: Lane): Wait | null {
    const { now } = this.#session;
    let latest: Wait | null = null;
    for (const one of limits) {
      const { settings } = this.#key(one);
      const use = this.#use(one);
      if (roomOf(settings, use, lane, now) > 0 || this.isTotalFull(one.limit)) continue;
      const until = roomAt(settings, use, lane) ?? NEVER;
      if (latest === null || until > latest.until) latest = { until, for: one.text };
    }
    return latest;
  }

  /** Whether no job of the limit may start, whatever its key. */
  isTotalFull(limit: string): boolean {
    const bound = this.#bound(limit);
    return bound !== null && this.#total(limit) >= bound;
  }

  /** A claim takes the job that has this number, from this lane: `write` must follow. */
  reserve(seq: number, limits: readonly StoredKey[], lane: number): void {
    const { now } = this.#session;
    for (const one of limits) {
      const key = this.#key(one);
      const before = mayHoldSlot(lane) ? this.#slotOf(one, seq) : undefined;
      key.running++;
      if (before !== undefined && key.waiting > 0) key.waiting--;
      if (before?.state === SLOT.suspect && key.suspects > 0) key.suspects--;
      const { rate } = key.settings;
      if (rate !== null) key.nextStartAt = afterStarts(rate, key.nextStartAt, now, 1);
      if (before?.state !== SLOT.suspect && this.#bound(one.limit) !== null)
        this.#totals.set(one.limit, this.#total(one.limit) + 1);
    }
  }

  /** The job that has this number was taken. Write transactions only. */
  write(seq: number, limits: readonly StoredKey[]): void {
    for (const one of limits) {
      const { settings, nextStartAt } = this.#key(one);
      takeSlot(this.#session, one, seq, keepsTurn(settings, 'fresh'));
      if (settings.rate !== null) writeNextStart(this.#session, one, nextStartAt);
    }
  }

  #use(one: StoredKey): KeyUse {
    const { settings, running, waiting, suspects, nextStartAt } = this.#key(one);
    return { running, waiting, suspects, nextStartAt, total: settings.total === null ? 0 : this.#total(one.limit) };
  }

  #key(one: StoredKey): KeyState {
    let key = this.#keys.get(one.text);
    if (key === undefined) {
      const settings = readSettings(this.#session, one);
      // Without a concurrency any number may run, and it does not matter how many do.
      const use = settings.concurrency === null ? noUse : this.#readUse(one);
      const nextStartAt = settings.rate === null ? 0 : readNextStart(this.#session, one);
      key = { settings, ...use, nextStartAt };
      this.#keys.set(one.text, key);
    }
    return key;
  }

  #readUse({ limit, key }: LimitKey): typeof noUse {
    return this.#session.sql(USE).get(limit, key) as unknown as typeof noUse;
  }

  #slotOf({ limit, key }: LimitKey, seq: number): { state: number } | undefined {
    return this.#session.sql(SLOT_OF).get(limit, key, seq) as { state: number } | undefined;
  }

  #total(limit: string): number {
    let total = this.#totals.get(limit);
    if (total === undefined) {
      ({ total } = this.#session.sql(TOTAL).get(limit) as { total: number });
      this.#totals.set(limit, total);
    }
    return total;
  }

  #bound(limit: string): number | null {
    let bound = this.#bounds.get(limit);
    if (bound === undefined) {
      bound = settingsFor(readRules(this.#session, limit, null), undefined).total;
      this.#bounds.set(limit, bound);
    }
    return bound;
  }
}
