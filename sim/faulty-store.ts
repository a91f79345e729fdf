import { StoreUnavailableError } from '../src/errors.ts';
import { forwarding } from '../src/store/forwarding.ts';
import type { JobsListener, LimitFilter, RetentionWrite, Store } from '../src/store/store.ts';
import { type VerbName, verbNames } from '../src/store/verbs.ts';
import { copy } from './copy.ts';
import type { SimStore } from './engines.ts';
import type { History } from './history.ts';
import { type SimProcess, START } from './scheduler.ts';

/** How a call to the store ends. */
export const endings = ['answered', 'answer-lost', 'refused', 'hangs'] as const;
export type Ending = (typeof endings)[number];

export interface Faults {
  /** How the next call of this process ends. */
  ending(process: SimProcess, verb: VerbName): Ending;
  /** Called before and after a call is carried out; may kill its process. */
  around(process: SimProcess, when: 'before' | 'after'): void;
  /** How long a call or its answer travels. */
  latencyMs(): number;
  losesWakeUp(): boolean;
}

export interface SharedStore {
  /** The engine; it may be closed and opened again under way. */
  engine: SimStore;
  readonly machine: SimProcess;
  readonly history: History;
  readonly faults: Faults;
  calls: number;
  /** Calls that the engine is carrying out at this moment. */
  inProgress: number;
}

const changesGates: ReadonlySet<VerbName> = new Set<VerbName>(['report', 'claimGated', 'changeGate', 'prune']);

const Forwarding = forwarding(verbNames);

/** The store as one process sees it: across a network that delays, loses and breaks, to a machine that may be away. */
export function storeFor(process: SimProcess, shared: SharedStore): Store {
  const call = (verb: VerbName, args: readonly unknown[]): Promise<unknown> =>
    new FaultyCall(process, shared, verb, args).answer;
  return Object.assign(new Forwarding(call), {
    kind: shared.engine.kind,
    onWork: (listener: () => void) =>
      engineOf(process, shared).onWork(() => {
        if (!shared.faults.losesWakeUp()) process.scheduler.plan(process, shared.faults.latencyMs(), listener);
      }),
    pushes: shared.engine.pushes,
    onJobs: (listener: JobsListener) => {
      const pass = (call: ((ids: readonly string[]) => void) | undefined) => (ids: readonly string[]) => {
        if (call && !shared.faults.losesWakeUp())
          process.scheduler.plan(process, shared.faults.latencyMs(), () => call(ids));
      };
      return engineOf(process, shared).onJobs({ ended: pass(listener.ended), cancelling: pass(listener.cancelling) });
    },
    // Nothing that is checked depends on who is registered, or on the history, so these calls take no faults, and no chance from the others.
    register: () => Promise.resolve(),
    rollUp: () => Promise.resolve({ isDone: true }),
    // It is asked while a process opens, and finds what the world wrote before: see `World`.
    limits: (filter: LimitFilter) => shared.engine.limits(filter),
    // Everything is kept, whichever process opens first.
    retention: () => shared.engine.retention(),
    writeRetention: (writes: readonly RetentionWrite[]) => shared.engine.writeRetention(writes),
    close: () => Promise.resolve(),
  });
}

function engineOf(process: SimProcess, { engine }: SharedStore): Store {
  return engine.forProcess?.(process.name) ?? engine;
}

class FaultyCall {
  readonly answer: Promise<unknown>;
  readonly #process: SimProcess;
  readonly #shared: SharedStore;
  readonly #verb: VerbName;
  readonly #args: readonly unknown[];
  readonly #number: number;
  readonly #sentAt: number;
  readonly #settle: PromiseWithResolvers<unknown> = Promise.withResolvers();

  constructor(process: SimProcess, shared: SharedStore, verb: VerbName, args: readonly unknown[]) {
    this.#process = process;
    this.#shared = shared;
    this.#verb = verb;
    // As it was when it was sent: the caller may go on to change it.
    this.#args = copy(args);
    this.#number = ++shared.calls;
    this.#sentAt = process.scheduler.now;
    this.answer = this.#settle.promise;
    // A dead caller does not listen any more.
    this.answer.catch(() => {});
    const ending = shared.faults.ending(process, verb);
    shared.faults.around(process, 'before');
    // A call that was sent is carried out even when its sender dies meanwhile.
    if (process.alive)
      process.scheduler.plan(shared.machine, shared.faults.latencyMs(), () => void this.#arrive(ending));
  }

  async #arrive(ending: Ending): Promise<void> {
    const { history, machine, faults } = this.#shared;
    const call = { call: this.#number, process: this.#process.name, verb: this.#verb, args: this.#args };
    if (ending === 'refused') {
      history.add({ at: machine.clock.now() - START, kind: 'refused', ...call });
      this.#reject('the store refused');
      return;
    }
    const from = machine.clock.now() - START;
    this.#shared.inProgress++;
    try {
      const engine = engineOf(this.#process, this.#shared);
      const verb = engine[this.#verb] as (...args: unknown[]) => Promise<unknown>;
      const value = await verb.apply(engine, this.#args as unknown[]);
      history.add({
        at: machine.clock.now() - START,
        kind: 'executed',
        ...call,
        from,
        value: copy(value),
      });
      await this.#readGates(engine);
      faults.around(this.#process, 'after');
      if (ending === 'answered') this.#deliver(true, () => this.#settle.resolve(value));
      else if (ending === 'answer-lost') this.#reject('the answer was lost');
    } catch (error) {
      const { message } = error as Error;
      history.add({ at: machine.clock.now() - START, kind: 'failed', ...call, message });
      this.#reject(`the store failed: ${message}`);
    } finally {
      this.#shared.inProgress--;
    }
  }

  /** Where calls overlap, what is read afterwards may be what another call has left. */
  async #readGates(engine: Store): Promise<void> {
    const { engine: shared, history, machine } = this.#shared;
    if (!changesGates.has(this.#verb) || shared.forProcess !== undefined) return;
    const gates = (await engine.gates({ limit: 1_000 })).map(({ gate, state }) => ({ gate, state }));
    history.add({ at: machine.clock.now() - START, kind: 'gates', gates: copy(gates) });
  }

  #reject(message: string): void {
    this.#deliver(false, () => this.#settle.reject(new StoreUnavailableError(message)));
  }

  #deliver(ok: boolean, action: () => void): void {
    const { history, machine, faults } = this.#shared;
    this.#process.scheduler.plan(this.#process, faults.latencyMs(), () => {
      const call = { call: this.#number, process: this.#process.name, sentAt: this.#sentAt };
      history.add({ at: machine.clock.now() - START, kind: 'answered', ...call, ok });
      action();
    });
  }
}
