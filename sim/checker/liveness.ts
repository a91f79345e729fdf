import type { Check } from './checker.ts';

/** A worker waits this long for an answer, and pauses this long before it tries again; and calls take a moment. */
const ANSWER_MS = 3_000;
const PAUSE_MS = 3_000;
const SLACK_MS = 2_000;

/** Guarantee 10: once healed, a fleet with nothing in hand does not leave work lying about. */
export class Liveness {
  readonly #boundMs: number;
  #idleSince: number | null = null;

  constructor({ leaseMs, pollMs }: { leaseMs: number; pollMs: number }) {
    // A lease has to run out, a rescuer to come by (within half a lease), a poll to notice.
    this.#boundMs = leaseMs * 1.5 + pollMs + ANSWER_MS + PAUSE_MS + SLACK_MS;
  }

  observe({ model, now, expect }: Check): void {
    const works = model.running().some(({ lease }) => lease !== null && lease.endsAt > now);
    const hasWork = model.due(now).length > 0 || model.running().length > 0;
    if (works || !hasWork) {
      this.#idleSince = null;
      return;
    }
    this.#idleSince ??= now;
    const idleMs = now - this.#idleSince;
    expect(
      10,
      idleMs <= this.#boundMs,
      () => `nothing runs for ${idleMs} ms although ${model.due(now)[0]?.made.id} is due`,
    );
    if (idleMs > this.#boundMs) this.#idleSince = now;
  }
}
