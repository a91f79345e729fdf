import type { Check } from './checker.ts';
import type { Model, ModelJob } from './model.ts';

/** A worker waits this long for an answer, and pauses this long before it tries again; and calls take a moment. */
const ANSWER_MS = 3_000;
const PAUSE_MS = 3_000;
const SLACK_MS = 2_000;

/** The longest wait of a keyed gate between two probes is 15 min, and the worker whose probe failed waits twice as long. */
const LONGEST_GATED_MS = 31 * 60_000;

/** Guarantee 10: once healed, a fleet with nothing in hand does not leave work lying about. */
export class Liveness {
  readonly #boundMs: number;
  #idleSince: number | null = null;
  #gatedSince: number | null = null;

  constructor({ leaseMs, pollMs }: { leaseMs: number; pollMs: number }) {
    // A lease has to run out, a rescuer to come by (within half a lease), a poll to notice.
    this.#boundMs = leaseMs * 1.5 + pollMs + ANSWER_MS + PAUSE_MS + SLACK_MS;
  }

  observe({ model, now, expect }: Check): void {
    const running = model.running();
    const due = model.due(now);
    const isGated = (job: ModelJob): boolean => model.gates.isGated(job, now);
    this.#observeGates(due.some(isGated), running.length, now, expect);
    const works = running.some(({ lease }) => lease !== null && lease.endsAt > now);
    const startable = works ? [] : due.filter((job) => !isGated(job) && mayStart(job, model, now));
    if (works || startable.length + running.length === 0) {
      this.#idleSince = null;
      return;
    }
    this.#idleSince ??= now;
    const idleMs = now - this.#idleSince;
    expect(10, idleMs <= this.#boundMs, () => `nothing runs for ${idleMs} ms although ${startable[0]?.made.id} is due`);
    if (idleMs > this.#boundMs) this.#idleSince = now;
  }

  /** Behind a gate jobs wait for the next probe, or for a worker's own pause; but something starts now and then. */
  #observeGates(isWaiting: boolean, running: number, now: number, expect: Check['expect']): void {
    if (!isWaiting || running > 0) {
      this.#gatedSince = null;
      return;
    }
    this.#gatedSince ??= now;
    const idleMs = now - this.#gatedSince;
    expect(12, idleMs <= LONGEST_GATED_MS, () => `nothing has started behind the gates for ${idleMs} ms`);
    if (idleMs > LONGEST_GATED_MS) this.#gatedSince = now;
  }
}

/** The trial of a suspect asks no limit. */
function mayStart(job: ModelJob, model: Model, now: number): boolean {
  return job.lane === 'suspect' || model.limits.hasRoom(job, model, now);
}
