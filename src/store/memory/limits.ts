import {
  type KeyUse,
  keepsTurn,
  type LimitKey,
  type LimitRules,
  type LimitSettings,
  limitsText,
  type Rate,
  rulesAfter,
  settingsFor,
} from '../../limit/limit.ts';
import { mostLive } from '../../limit/on-limit.ts';
import { permitted } from '../../limit/permit.ts';
import { afterChange, afterHandedBack, afterStarts, startsAt } from '../../limit/rate.ts';
import { roomAt, roomOf, roomWithin } from '../../limit/room.ts';
import type {
  LimitFilter,
  LimitInfo,
  LimitKeyFilter,
  LimitKeyInfo,
  LimitWrite,
  PermitAnswer,
  PermitRequest,
} from '../store.ts';
import type { Row } from './row.ts';

/** A key that is in use, or whose rate or settings are to be remembered. */
interface Key {
  readonly limit: string;
  readonly key: string;
  rules: LimitRules;
  readonly running: Set<Row>;
  /** Those that keep their turn. */
  readonly turns: Set<Row>;
  readonly waiting: Set<Row>;
  nextStartAt: number;
}

/** What limits allow, and which jobs count in them. */
export class Limits {
  readonly #rules: Map<string, LimitRules> = new Map();
  readonly #keys: Map<string, Key> = new Map();
  /** By limit: jobs that run, and suspects that wait. */
  readonly #totals: Map<string, number> = new Map();

  /** How many of `count` jobs with these limits may start now: see `roomWithin`. */
  room({ limits, lane }: Pick<Row, 'limits' | 'lane'>, now: number, count: number, places?: number): number {
    const each = limits.map((one) => ({ settings: this.#settings(one), use: this.#use(one) }));
    return roomWithin(each, lane, now, count, places);
  }

  /** When one may start by time alone, if none may now. */
  roomAt(row: Pick<Row, 'limits' | 'lane'>, now: number): number | null {
    let latest = now;
    for (const one of row.limits) {
      const settings = this.#settings(one);
      const use = this.#use(one);
      if (roomOf(settings, use, row.lane, now) > 0) continue;
      const at = roomAt(settings, use, row.lane);
      if (at === null) return null;
      latest = Math.max(latest, at);
    }
    return latest;
  }

  /** Those of these limits that let none start now. */
  full({ limits, lane }: Pick<Row, 'limits' | 'lane'>, now: number): string[] {
    const isFull = (one: LimitKey): boolean => roomOf(this.#settings(one), this.#use(one), lane, now) === 0;
    return limits.filter(isFull).map(({ limit }) => limit);
  }

  /** The jobs of a key that wait and run, when they fill it; none when they do not. */
  liveWhenFull({ limit, key }: LimitKey): readonly Row[] {
    const most = mostLive(this.#settings({ limit, key }));
    const { waiting, running } = this.#key({ limit, key });
    return most === null || waiting.size + running.size < most ? [] : [...waiting, ...running];
  }

  /** It has been claimed. Answers the limits in which it keeps its turn should it have to run again. */
  started(row: Row, now: number): readonly string[] {
    for (const one of row.limits) {
      const { rate } = this.#settings(one);
      const key = this.#key(one);
      if (rate !== null) key.nextStartAt = afterStarts(rate, key.nextStartAt, now, 1);
    }
    return row.limits.filter((one) => keepsTurn(this.#settings(one), 'fresh')).map(({ limit }) => limit);
  }

  /** It was claimed, and handed back before it started. */
  handedBack(row: Row, claimedAt: number, now: number): void {
    for (const one of row.limits) {
      const { rate } = this.#settings(one);
      const key = this.#key(one);
      if (rate !== null) key.nextStartAt = afterHandedBack(rate, key.nextStartAt, now - claimedAt);
    }
  }

  /** The row has come into its state. */
  file(row: Row): void {
    this.#count(row, 1);
    for (const one of row.limits) {
      const key = this.#key(one);
      if (row.state === 'running') key.running.add(row);
      else {
        key.waiting.add(row);
        if (row.lane === 'suspect' || row.turns.includes(one.limit)) key.turns.add(row);
      }
    }
  }

  /** The row leaves its state. */
  unfile(row: Row): void {
    this.#count(row, -1);
    for (const one of row.limits) {
      const key = this.#key(one);
      key.waiting.delete(row);
      key.running.delete(row);
      key.turns.delete(row);
    }
  }

  #count(row: Row, change: number): void {
    if (row.state !== 'running' && row.lane !== 'suspect') return;
    for (const { limit } of row.limits) this.#totals.set(limit, (this.#totals.get(limit) ?? 0) + change);
  }

  permit({ limit, key: text, cost }: PermitRequest, now: number): PermitAnswer {
    const { rate } = this.#settings({ limit, key: text });
    if (rate === null) return { now, startsAt: null, burst: null };
    const key = this.#key({ limit, key: text });
    const answer = permitted(rate, key.nextStartAt, now, cost);
    if ('askAt' in answer) return { now, startsAt: answer.askAt, burst: rate.burst };
    key.nextStartAt = answer.nextStartAt;
    return { now, startsAt: null, burst: rate.burst };
  }

  write(writes: readonly LimitWrite[], now: number): void {
    for (const write of writes) {
      const keys = write.key === null ? this.#keysOf(write.limit) : [this.#key({ limit: write.limit, key: write.key })];
      const rates = keys.map((key) => this.#settings(key).rate);
      this.#writeRule(write);
      for (const [index, key] of keys.entries()) {
        key.nextStartAt = afterChange(rates[index] as Rate | null, this.#settings(key).rate, key.nextStartAt, now);
      }
    }
  }

  #writeRule(write: LimitWrite): void {
    const { limit, key } = write;
    if (key === null) this.#rules.set(limit, rulesAfter(this.#rules.get(limit) ?? noRules, write));
    else {
      const one = this.#key({ limit, key });
      one.rules = rulesAfter(one.rules, write);
    }
  }

  list({ names, limit }: LimitFilter): LimitInfo[] {
    const used = [...this.#keys.values()].map((key) => key.limit);
    return [...new Set([...this.#rules.keys(), ...used])]
      .filter((name) => names === undefined || names.includes(name))
      .sort()
      .slice(0, limit)
      .map((name) => {
        const keys = this.#keysOf(name);
        return {
          name,
          ...(this.#rules.get(name) ?? noRules),
          running: keys.reduce((sum, { running }) => sum + running.size, 0),
          waiting: keys.reduce((sum, { waiting }) => sum + waiting.size, 0),
          keysSet: keys.filter(isSet).length,
        };
      });
  }

  keys(name: string, { keys, limit }: LimitKeyFilter, now: number): LimitKeyInfo[] {
    return this.#keysOf(name)
      .filter(({ key }) => keys === undefined || keys.includes(key))
      .filter(
        ({ rules, running, waiting }) => (rules.code ?? rules.set) !== null || running.size > 0 || waiting.size > 0,
      )
      .sort(
        (a, b) => Number(isSet(b)) - Number(isSet(a)) || b.waiting.size - a.waiting.size || (a.key < b.key ? -1 : 1),
      )
      .slice(0, limit)
      .map((key) => {
        const settings = this.#settings(key);
        return {
          limit: name,
          key: key.key,
          ...key.rules,
          settings,
          running: key.running.size,
          waiting: key.waiting.size,
          due: [...key.waiting].filter(({ dueAt }) => dueAt <= now).length,
          startsAt: settings.rate === null ? null : startsAt(settings.rate, key.nextStartAt),
        };
      });
  }

  #settings({ limit, key }: LimitKey): LimitSettings {
    return settingsFor(this.#rules.get(limit), this.#keys.get(textOf({ limit, key }))?.rules);
  }

  #use({ limit, key: text }: LimitKey): KeyUse {
    const key = this.#key({ limit, key: text });
    const total = this.#totals.get(limit) ?? 0;
    const suspects = [...key.turns].filter(({ lane }) => lane === 'suspect').length;
    return { running: key.running.size, waiting: key.turns.size, suspects, total, nextStartAt: key.nextStartAt };
  }

  #keysOf(limit: string): Key[] {
    return [...this.#keys.values()].filter((key) => key.limit === limit);
  }

  #key(one: LimitKey): Key {
    const text = textOf(one);
    let key = this.#keys.get(text);
    if (key === undefined) {
      key = { ...one, rules: noRules, running: new Set(), turns: new Set(), waiting: new Set(), nextStartAt: 0 };
      this.#keys.set(text, key);
    }
    return key;
  }
}

const noRules: LimitRules = { code: null, set: null };

function isSet({ rules }: Key): boolean {
  return rules.set !== null;
}

function textOf(one: LimitKey): string {
  return limitsText([one]);
}
