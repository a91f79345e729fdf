import { type Asked, Flights, sendTogether } from './batch.ts';
import type { Clock } from './clock.ts';
import { StoreBusyError } from './errors.ts';
import type { Enqueued, NewJob } from './store/store.ts';

/** How long to ask for a key that somebody's open transaction holds. */
const PATIENCE_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

interface Ask extends Asked<NewJob, Enqueued> {
  readonly until: number;
}

/** A key that travels alone, and all who ask for it here. The first of them travels; the others learn from its answer. */
interface Apart {
  readonly identity: string;
  asked: Ask[];
  busy: StoreBusyError;
  pauseMs: number;
}

/**
 * Group commit for jobs with keys. A key that an open transaction elsewhere holds makes the store busy for all that
 * travel with it. They are then sent again, each key alone, so that in the end only who wants that key waits for it.
 */
export class KeyedBatch {
  readonly #clock: Clock;
  readonly #together: Flights<Ask, readonly Enqueued[]>;
  /** Keys that were in a flight of which one is contested. */
  readonly #suspects: Flights<Apart, readonly Enqueued[]>;
  /** Keys that were contested even when alone; in a line of their own, where they hold up nobody else. */
  readonly #contested: Flights<Apart, readonly Enqueued[]>;
  readonly #apart: Map<string, Apart> = new Map();

  constructor(send: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>, limit: number, clock: Clock) {
    this.#clock = clock;
    const sendAll = sendTogether(send);
    this.#together = new Flights<Ask, readonly Enqueued[]>(
      sendAll,
      {
        answered: ({ resolve }, answers) => resolve(answers),
        failed: (ask, error) => (error instanceof StoreBusyError ? this.#setApart(ask, error) : ask.reject(error)),
      },
      { limit, sizeOf: ({ items }) => items.length },
    );
    const alone = (): Flights<Apart, readonly Enqueued[]> =>
      new Flights(
        async ([apart]) => {
          const { asked, busy } = apart as Apart;
          // It may have waited long for its turn.
          if (this.#isOver(asked[0] as Ask)) throw busy;
          return sendAll(asked.slice(0, 1));
        },
        {
          answered: (apart, answers) => this.#release(apart).resolve(answers),
          failed: (apart, error) =>
            error instanceof StoreBusyError ? this.#tryLater(apart, error) : this.#release(apart).reject(error),
        },
        { limit: 1 },
      );
    this.#suspects = alone();
    this.#contested = alone();
  }

  /** All of them have one name and one key. */
  add(items: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const until = this.#clock.monotonic() + PATIENCE_MS;
    return new Promise((resolve, reject) => {
      const ask = { items, resolve, reject, until };
      const apart = this.#apart.get(identityOf(ask));
      if (apart === undefined) this.#together.add(ask);
      else apart.asked.push(ask);
    });
  }

  #setApart(ask: Ask, busy: StoreBusyError): void {
    const identity = identityOf(ask);
    const known = this.#apart.get(identity);
    if (known !== undefined) {
      known.asked.push(ask);
      return;
    }
    const apart: Apart = { identity, asked: [ask], busy, pauseMs: FIRST_PAUSE_MS };
    this.#apart.set(identity, apart);
    this.#suspects.add(apart);
  }

  /** The first has its answer, so the others need not wait any longer. */
  #release({ identity, asked }: Apart): Ask {
    const [first, ...others] = asked;
    this.#apart.delete(identity);
    for (const ask of others) this.#together.add(ask);
    return first as Ask;
  }

  #tryLater(apart: Apart, busy: StoreBusyError): void {
    const { identity, asked, pauseMs } = apart;
    for (const ask of asked) if (this.#isOver(ask)) ask.reject(busy);
    apart.asked = asked.filter((ask) => !this.#isOver(ask));
    if (apart.asked.length === 0) {
      this.#apart.delete(identity);
      return;
    }
    apart.busy = busy;
    apart.pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    this.#clock.after(pauseMs * (0.5 + this.#clock.random()), () => this.#contested.add(apart));
  }

  #isOver({ until }: Ask): boolean {
    return this.#clock.monotonic() >= until;
  }
}

/** Neither has control characters in it. */
function identityOf({ items }: Ask): string {
  const { name, key } = items[0] as NewJob;
  return `${name}\n${key}`;
}
