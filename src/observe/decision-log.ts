import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { ClaimedJob, SettleAnswer, Settlement } from '../store/store.ts';
import type { RunEvent } from './events.ts';
import type { StructuredLogger } from './log.ts';
import { traceIdOf } from './tracing.ts';

const LONGEST_MESSAGE = 300;

/** The fields of an entry about a decision. */
interface DecisionFields extends RunEvent {
  readonly event: 'decision' | 'dead';
  readonly lane: string;
  readonly outcome: OutcomeKind;
  readonly decision: string;
  readonly rule: string;
  readonly durationMs: number;
  readonly delayMs?: number;
  readonly reason?: string;
  readonly overruled?: 'cancelled';
  readonly error?: string;
  readonly fingerprint?: string;
  readonly traceId?: string;
}

/**
 * One line per decision at debug, and per dead job at warn. Only a logger that was given as one gets these: it has levels,
 * and what reads it can count. A function that takes entries gets failures in groups (failure-log.ts), for people to read.
 */
export class DecisionLog {
  readonly #logger: StructuredLogger;

  constructor(logger: StructuredLogger) {
    this.#logger = logger;
  }

  write(job: ClaimedJob, settlement: Settlement, answer: SettleAnswer): void {
    const { decision } = settlement;
    const isDead = decision.kind === 'dead';
    try {
      // Asked first: at debug, an entry would be made for every run, and thrown away.
      if (!isDead && this.#logger.isLevelEnabled?.('debug') === false) return;
      const fields = fieldsOf(job, settlement, answer);
      if (isDead) this.#logger.warn({ ...fields, event: 'dead' }, `a job is dead (${decision.reason})`);
      else this.#logger.debug(fields, `a run ${settlement.outcome}: ${decision.kind}`);
    } catch {
      // A logger that throws must not cost a job; there is no other place to report it.
    }
  }
}

function fieldsOf(job: ClaimedJob, settlement: Settlement, answer: SettleAnswer): DecisionFields {
  const { id, name, queue, run, attempts, worker, lane, trace } = job;
  const { outcome, decision, error, startedAt, endedAt } = settlement;
  const traceId = trace === null ? null : traceIdOf(trace);
  return {
    event: 'decision',
    id,
    name,
    queue,
    run,
    attempt: attempts,
    worker,
    lane,
    outcome,
    decision: decision.kind,
    rule: decision.rule,
    durationMs: endedAt - startedAt,
    ...('delayMs' in decision && { delayMs: decision.delayMs }),
    ...(decision.kind === 'dead' && { reason: decision.reason }),
    ...(answer === 'cancelled' && { overruled: answer }),
    ...(error !== null && { error: inShort(error) }),
    ...(error?.fingerprint !== undefined && { fingerprint: error.fingerprint }),
    ...(traceId !== null && { traceId }),
  };
}

/** An error as one short text. */
export function inShort({ name, message }: StoredError): string {
  return `${name}: ${message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE)}...`}`;
}
