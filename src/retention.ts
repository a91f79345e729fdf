import { newOrder, type OrderOptions, readOperator } from './audit.ts';
import type { Clock } from './clock.ts';
import { checkName, namesOf, readOptions, unexpected } from './config.ts';
import type { AnyJobDefinition } from './definition.ts';
import { finishedStates } from './job.ts';
import type { Logger } from './observe/log.ts';
import { retentionNote } from './order-notes.ts';
import { durationText, type KeptFor, type RetentionOptions, readRetention } from './retention-options.ts';
import { type FinishedState, keptMs, longer } from './store/retention.ts';
import type { RetentionRule, RetentionWrite, Store } from './store/store.ts';

/** What holds for the jobs of one name, and who said so. */
export interface RetentionInfo {
  /** Null for all names that have no rule of their own. */
  readonly name: string | null;
  /** In ms; null is for ever. */
  readonly kept: Readonly<Record<FinishedState, number | null>>;
  /** What code says, and what was set by hand, which goes before. */
  readonly code: KeptFor;
  readonly set: KeptFor;
}

export interface RetentionOrderOptions extends OrderOptions {
  /** The job name it is for. Without it: all names that have no rule of their own. */
  readonly name?: string;
}

const orderOptionNames = namesOf<RetentionOrderOptions>({ name: true, by: true });

type RetentionStore = Pick<Store, 'retention' | 'writeRetention'>;

/** How long finished jobs are kept. It is stored: no process deletes sooner than it says, however that was started. */
export class Retention {
  readonly #store: RetentionStore;
  readonly #clock: Clock;

  constructor(store: RetentionStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** What holds for all names without a rule of their own, then the names that have one. */
  async list(): Promise<RetentionInfo[]> {
    const rules = await this.#store.retention();
    const names = new Set(rules.flatMap(({ name }) => name ?? []));
    return [null, ...[...names].sort()].map((name) => infoOf(rules, name));
  }

  /** What holds for one name. */
  async show(name: string): Promise<RetentionInfo> {
    return infoOf(await this.#store.retention(), checkName(name, 'retention.show'));
  }

  /**
   * Keeps finished jobs for longer, or shorter, than code says, until `reset`. What is left out stays as it was; the least is
   * 5 minutes, and null is for ever.
   * @example await mulligan.retention.set({ completed: '7d' }, { name: 'email.send' })
   */
  async set(values: RetentionOptions, options: RetentionOrderOptions = {}): Promise<RetentionInfo> {
    const { name, by } = readOrder(options, 'retention.set');
    const kept = readRetention(values, 'retention.set');
    if (Object.keys(kept).length === 0) {
      throw unexpected('retention.set', `one of ${finishedStates.join(', ')}`, values);
    }
    return this.#write(writesOf(name, 'set', kept), by);
  }

  /** Takes away what was set by hand: code decides again, and without it the default. */
  async reset(options: RetentionOrderOptions = {}): Promise<RetentionInfo> {
    const { name, by } = readOrder(options, 'retention.reset');
    const writes = finishedStates.map((state) => ({ name, state, source: 'set' }) as const);
    return this.#write(writes, by);
  }

  async #write(writes: readonly RetentionWrite[], by: string): Promise<RetentionInfo> {
    await this.#store.writeRetention(writes, newOrder(this.#clock, by, retentionNote(writes)));
    return infoOf(await this.#store.retention(), (writes[0] as RetentionWrite).name);
  }
}

function infoOf(rules: readonly RetentionRule[], name: string | null): RetentionInfo {
  const each = <Value>(value: (state: FinishedState) => Value): Record<FinishedState, Value> =>
    Object.fromEntries(finishedStates.map((state) => [state, value(state)])) as Record<FinishedState, Value>;
  const said = (source: RetentionRule['source']): KeptFor =>
    Object.fromEntries(
      rules.filter((rule) => rule.name === name && rule.source === source).map((rule) => [rule.state, rule.keptMs]),
    );
  return { name, kept: each((state) => keptMs(rules, name, state)), code: said('code'), set: said('set') };
}

function readOrder(
  options: RetentionOrderOptions,
  what: string,
): { readonly name: string | null; readonly by: string } {
  const { name, by } = readOptions(options, orderOptionNames, what);
  return { name: name === undefined ? null : checkName(name, `${what}: name`), by: readOperator(by, what) };
}

function writesOf(name: string | null, source: RetentionRule['source'], kept: KeptFor): RetentionWrite[] {
  return finishedStates.flatMap((state) => {
    const ms = kept[state];
    return ms === undefined ? [] : [{ name, state, source, keptMs: ms }];
  });
}

/**
 * Stores what code says of its own jobs, where that is longer than what is stored. Where something else holds, a person may
 * have to decide, so it is logged.
 */
export async function registerRetention(
  store: RetentionStore,
  definitions: Iterable<AnyJobDefinition>,
  byDefault: KeptFor,
  log: Logger,
): Promise<void> {
  const said = [...definitions].flatMap(({ name, retention }) =>
    writesOf(name, 'code', { ...byDefault, ...retention }),
  );
  if (said.length === 0) return;
  const before = await store.retention();
  const news = said.filter((rule) => !isStored(before, rule));
  if (news.length > 0) await store.writeRetention(news);
  const rules = news.length === 0 ? before : await store.retention();
  for (const { name, state, keptMs: ms } of said as RetentionRule[]) {
    const held = keptMs(rules, name, state);
    if (held === ms) continue;
    log.warn('another retention than in code holds: it was set by hand, or is longer and was stored before', {
      name,
      state,
      code: durationText(ms),
      holds: durationText(held),
      change: `mulligan retention set ${state}=${durationText(ms)} --name ${name}`,
    });
  }
}

function isStored(rules: readonly RetentionRule[], { name, state, keptMs: ms }: RetentionWrite): boolean {
  const stored = rules.find((rule) => rule.name === name && rule.state === state && rule.source === 'code');
  return stored !== undefined && longer(stored.keptMs, ms ?? null) === stored.keptMs;
}
