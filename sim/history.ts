import { createHash } from 'node:crypto';
import type { GateState } from '../src/gate/index.ts';
import type { Job, RunRecord } from '../src/job.ts';
import type { ErrorGroup, GateRef } from '../src/store/store.ts';
import type { VerbName } from '../src/store/verbs.ts';

/** What an outside observer can know of a run: calls as the store executed them, their answers, and what handlers did. */
export type HistoryEvent =
  | ExecutedEvent
  | {
      readonly at: number;
      readonly kind: 'answered';
      readonly sentAt: number;
      readonly call: number;
      readonly process: string;
      readonly ok: boolean;
    }
  | {
      readonly at: number;
      readonly kind: 'refused';
      readonly call: number;
      readonly process: string;
      readonly verb: VerbName;
      readonly args: readonly unknown[];
    }
  /** The store threw, though nothing was wrong with it. */
  | {
      readonly at: number;
      readonly kind: 'failed';
      readonly call: number;
      readonly process: string;
      readonly verb: VerbName;
      readonly args: readonly unknown[];
      readonly message: string;
    }
  /** It was killed or paused: from here on nothing can be asked of it. */
  | { readonly at: number; readonly kind: 'down'; readonly process: string }
  | {
      readonly at: number;
      readonly kind: 'handler';
      readonly process: string;
      readonly job: string;
      readonly run: number;
      readonly attempt: number;
    }
  /** The gates after a call that may have changed one, where calls do not overlap. */
  | {
      readonly at: number;
      readonly kind: 'gates';
      readonly gates: readonly { readonly gate: GateRef; readonly state: GateState }[];
    }
  /** A dependency goes down, or is back. */
  | { readonly at: number; readonly kind: 'dependency'; readonly resource: string; readonly isDown: boolean }
  | { readonly at: number; readonly kind: 'effect'; readonly job: string; readonly run: number; readonly key: string }
  | { readonly at: number; readonly kind: 'note'; readonly text: string };

/** A call that the store carried out, whether or not its caller ever heard. */
export interface ExecutedEvent {
  /** When it was answered, in store time. */
  readonly at: number;
  /** When it reached the store. The same as `at` where calls do not overlap. */
  readonly from: number;
  readonly kind: 'executed';
  readonly call: number;
  readonly process: string;
  readonly verb: VerbName;
  readonly args: readonly unknown[];
  readonly value: unknown;
}

/** How everything ended, as the store tells it. */
export interface FinalState {
  readonly jobs: readonly Job[];
  readonly ledgers: ReadonlyMap<string, readonly RunRecord[]>;
  readonly errorGroups: readonly ErrorGroup[];
}

export class History {
  readonly events: HistoryEvent[] = [];
  /** When faults were over, in store time; null before that. */
  healedAt: number | null = null;

  add(event: HistoryEvent): void {
    this.events.push(event);
  }

  /** One line per event; two runs of one seed must give the same lines. */
  *trace(): Generator<string> {
    for (const event of this.events) yield describe(event);
  }

  hash(): string {
    const hash = createHash('sha256');
    for (const line of this.trace()) hash.update(line).update('\n');
    return hash.digest('hex').slice(0, 16);
  }
}

function describe(event: HistoryEvent): string {
  const { at, kind, ...rest } = event;
  switch (event.kind) {
    case 'executed':
      return `${event.from === at ? at : `${event.from}-${at}`} ${event.process} ${event.verb}#${event.call} ${render(event.args)} -> ${render(event.value)}`;
    case 'note':
      return `${at} -- ${event.text}`;
    default:
      return `${at} ${kind} ${render(rest)}`;
  }
}

/** Without stacks: they tell who called the simulator, not what happened in it. */
function render(value: unknown): string {
  const plain = value instanceof Map ? [...value] : value;
  return JSON.stringify(plain, (key, inner) => (key === 'stack' ? undefined : inner)) ?? 'done';
}
