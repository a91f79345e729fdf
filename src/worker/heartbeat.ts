import type { Clock, Timer } from '../clock.ts';
import type { Heartbeat, HeartbeatAnswer, Store } from '../store/store.ts';
import type { Lease } from './lease.ts';

/** Three chances before a lease runs out. */
const BEATS_PER_LEASE = 3;
/** Progress does not wait for the next regular beat, but does not cause a write per call either. */
const SOON_MS = 500;

/** One job in hand, as the heart sees it. */
export interface Held {
  readonly lease: Lease;
  /** JSON text that the store has not got yet. */
  unsentProgress: string | null;
  onLost(): void;
  onCancel(): void;
}

/** Extends all leases of a worker in one call per beat, and passes on what the store says about them. */
export class Heart {
  readonly #store: Pick<Store, 'heartbeat'>;
  readonly #clock: Clock;
  readonly #held: () => readonly Held[];
  readonly #everyMs: number;
  readonly #onError: (error: unknown) => void;
  #timer: Timer | null = null;
  #soon: Timer | null = null;
  #stopped = false;

  constructor(
    store: Pick<Store, 'heartbeat'>,
    clock: Clock,
    leaseMs: number,
    held: () => readonly Held[],
    onError: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#held = held;
    this.#everyMs = leaseMs / BEATS_PER_LEASE;
    this.#onError = onError;
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.after(this.#everyMs, () => {
      // The next beat does not wait for this one: a hanging call must not silence the heart.
      this.start();
      this.#beatAll();
    });
  }

  soon(): void {
    if (this.#soon !== null || this.#stopped) return;
    this.#soon = this.#clock.after(SOON_MS, () => {
      this.#soon = null;
      this.#beatAll();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#soon?.cancel();
  }

  /** False when any of the leases was lost. */
  async beat(held: readonly Held[]): Promise<boolean> {
    if (held.length === 0) return true;
    const askedAt = this.#clock.monotonic();
    const beats = held.map(beatFor);
    const answers = await this.#store.heartbeat(beats);
    let kept = true;
    for (const [index, one] of held.entries()) {
      const answer = answers[index] as HeartbeatAnswer;
      const { leaseMs, progress } = beats[index] as Heartbeat;
      if (!answer.kept) {
        kept = false;
        one.onLost();
        continue;
      }
      one.lease.renewed(askedAt, leaseMs);
      if (one.unsentProgress === progress) one.unsentProgress = null;
      if (answer.cancelRequested) one.onCancel();
    }
    return kept;
  }

  #beatAll(): void {
    this.beat(this.#held()).catch(this.#onError);
  }
}

function beatFor({ lease, unsentProgress }: Held): Heartbeat {
  const { id, run, worker } = lease.job;
  return { id, run, worker, leaseMs: lease.wantedMs, ...(unsentProgress === null ? {} : { progress: unsentProgress }) };
}
