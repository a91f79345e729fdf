import { newOrder, type OrderOptions, readOperator } from './audit.ts';
import type { Clock } from './clock.ts';
import { checkInteger, checkOneOf, namesOf, readOptions, unexpected } from './config.ts';
import { ConfigError } from './errors.ts';
import type { GateEvent } from './gate/index.ts';
import { explain } from './observe/explain-gate.ts';
import { type GateInfo, gateInfo, lastTransition, unheardOf } from './observe/gate-info.ts';
import { gateNote } from './order-notes.ts';
import { parentOf } from './store/gates.ts';
import {
  type GateAnswer,
  type GateKind,
  type GateOrder,
  type GateRef,
  gateKinds,
  type Store,
  type StoredGate,
} from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 1_000;
const HISTORY_SHOWN = 100;
/** Some events, such as a hold, are no transition; few come between two. */
const HISTORY_LOOKED_AT = 5;
/** A parent, a slash and a key, each of up to 200 characters. */
const LONGEST_NAME = 401;

export interface GateListOptions {
  /** How many at most. Default 50. */
  readonly limit?: number;
  readonly kind?: GateKind;
}

export interface GateShowOptions {
  /** Default: the gate of a resource if there is one of that name, then the soft gate of a parent, then that of a job. */
  readonly kind?: GateKind;
}

/** `by` is kept in the gate's history, too. */
export interface GateOrderOptions extends OrderOptions {}

export interface GateDetails {
  readonly gate: GateInfo;
  /** False when no report about it came in lately. Such a gate is closed. */
  readonly isKnown: boolean;
  /** What it does now and why, and what happens next, in sentences. */
  readonly explanation: readonly string[];
  /** Newest first; kept for 30 days. */
  readonly history: readonly GateEvent[];
}

type Report = (answer: GateAnswer) => void;

/** Gates by hand. An order holds until another one: `open` and `close` pin the gate, and no rule changes it then. */
export class Gates {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #report: Report;

  constructor(store: Store, clock: Clock, report: Report) {
    this.#store = store;
    this.#clock = clock;
    this.#report = report;
  }

  /** Gates that were heard of lately: those that are not closed first. A healthy gate may be missing. */
  async list(options: GateListOptions = {}): Promise<GateInfo[]> {
    const names = namesOf<GateListOptions>({ limit: true, kind: true });
    const { limit = DEFAULT_PAGE, kind } = readOptions(options, names, 'gates.list');
    const stored = await this.#store.gates({
      ...(kind === undefined ? {} : { kind: checkOneOf(kind, gateKinds, 'gates.list: kind') }),
      limit: checkInteger(limit, 'gates.list: limit', { min: 1, max: LARGEST_PAGE }),
    });
    return Promise.all(stored.map((one) => this.#info(one)));
  }

  /** One gate, and why it is as it is. A gate that was not heard of is closed. */
  async show(name: string, options: GateShowOptions = {}): Promise<GateDetails> {
    const checked = checkGateName(name, 'gates.show');
    const { kind } = readOptions(options, ['kind'], 'gates.show');
    const stored = await this.#find(
      checked,
      kind === undefined ? null : checkOneOf(kind, gateKinds, 'gates.show: kind'),
    );
    const gate: GateRef = stored?.gate ?? { kind: kind ?? 'resource', name: checked };
    const [history, parent] = await Promise.all([this.#store.gateHistory(gate, HISTORY_SHOWN), this.#parentOf(gate)]);
    const last = lastTransition(history);
    const info = stored === null ? unheardOf(gate, last, this.#clock.now()) : gateInfo(stored, last);
    const explanation = explain(info, { isKnown: stored !== null, history, parent: parent && gateInfo(parent, null) });
    return { gate: info, isKnown: stored !== null, explanation, history };
  }

  /** Lets nothing of the resource start, not even probes, until `unpin`, `close` or `reset`. */
  async open(name: string, options: GateOrderOptions = {}): Promise<GateInfo> {
    return this.#order('open', name, options);
  }

  /** Lets everything of the resource start until `unpin`, `open` or `reset`. Failures count meanwhile, so jobs may die. */
  async close(name: string, options: GateOrderOptions = {}): Promise<GateInfo> {
    return this.#order('close', name, options);
  }

  /** Gives the gate back to its rules. One that was pinned open sends probes and ramps up; `reset` closes it at once. */
  async unpin(name: string, options: GateOrderOptions = {}): Promise<GateInfo> {
    return this.#order('unpin', name, options);
  }

  /** Closes the gate at once; what it saw and its pin are forgotten. If the dependency is still down, it opens again. */
  async reset(name: string, options: GateOrderOptions & GateShowOptions = {}): Promise<GateInfo> {
    return this.#order('reset', name, options);
  }

  async #order(order: GateOrder, name: string, options: GateOrderOptions & GateShowOptions): Promise<GateInfo> {
    const what = `gates.${order}`;
    const checked = checkGateName(name, what);
    const { by, kind } = readOptions(options, order === 'reset' ? ['by', 'kind'] : ['by'], what);
    const operator = readOperator(by, what);
    const gate = await this.#target(
      order,
      checked,
      kind === undefined ? null : checkOneOf(kind, gateKinds, `${what}: kind`),
    );
    const recorded = newOrder(this.#clock, operator, gateNote(gate, order));
    const answer = await this.#store.changeGate(gate, order, operator, recorded);
    this.#report(answer);
    const stored = await this.#find(gate.name, gate.kind);
    return stored === null ? unheardOf(gate, null, answer.now) : this.#info(stored);
  }

  /** Only the gate of a resource holds jobs, so only that can be pinned. A soft gate can be reset. */
  async #target(order: GateOrder, name: string, kind: GateKind | null): Promise<GateRef> {
    const found = (await this.#find(name, kind))?.gate ?? { kind: kind ?? 'resource', name };
    if (order !== 'reset' && found.kind !== 'resource') throw cannotPin(order, found);
    return found;
  }

  async #find(name: string, kind: GateKind | null): Promise<StoredGate | null> {
    const stored = await this.#store.gates({ name, ...(kind === null ? {} : { kind }), limit: gateKinds.length });
    const ofKind = (wanted: GateKind): StoredGate | undefined => stored.find(({ gate }) => gate.kind === wanted);
    return ofKind('resource') ?? ofKind('parent') ?? ofKind('job') ?? null;
  }

  async #parentOf({ kind, name }: GateRef): Promise<StoredGate | null> {
    const parent = kind === 'resource' ? parentOf(name) : null;
    return parent === null ? null : this.#find(parent, 'parent');
  }

  async #info(stored: StoredGate): Promise<GateInfo> {
    const { gate, state } = stored;
    const isUsual = state.phase === 'closed' && state.pin === null;
    const history = isUsual ? [] : await this.#store.gateHistory(gate, HISTORY_LOOKED_AT);
    return gateInfo(stored, lastTransition(history));
  }
}

/** A pin would make the gate of a resource that no job has. */
function cannotPin(order: GateOrder, { kind, name }: GateRef): ConfigError {
  const reason =
    kind === 'parent'
      ? `${name} is the parent of ${name}/KEY and holds no jobs. Pin the gates of its keys.`
      : `${name} is the soft gate of a job and holds no jobs. Give the definition a resource to have a gate that does.`;
  return new ConfigError(`gates.${order}: ${reason}`);
}

/** False for a name that no enqueue takes. A store may hold it all the same: then nothing can be said of its gate. */
export function isGateName(value: unknown): value is string {
  const fits = typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_NAME;
  return fits && value.isWellFormed() && !/\p{Cc}/u.test(value);
}

export function checkGateName(value: unknown, what: string): string {
  if (isGateName(value)) return value;
  throw unexpected(what, "the name of a gate, such as 'smtp' or 'webhook/example.com'", value);
}
