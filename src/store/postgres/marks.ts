import type { Clock } from '../../clock.ts';

/** A place in a line: everything before it is gone, as far as is known. */
export interface Place {
  readonly dueAt: number;
  readonly seq: number;
}

const START: Place = { dueAt: 0, seq: 0 };
/** What was written this long ago is taken to be committed; whatever takes longer is found by the next full look. */
const LAG_MS = 200;
/** How often to look from the start; and never more than this part of the time, should a full look be slow. */
const FULL_LOOK_MS = 1_000;
const LARGEST_PART = 0.05;

/**
 * How far each line has been read. A row that was claimed stays in the index until it is vacuumed, and while anybody
 * anywhere in the database holds an old snapshot it cannot be: a claim that began at the start of its line would walk
 * over every job that went before. So it begins where the last one ended. That is only a hint: a row may be committed
 * late, or handed back to its old place, so now and then a look begins at the start again.
 */
export class Marks {
  readonly #clock: Clock;
  readonly #places: Map<number, Place> = new Map();
  #fullLookAt = 0;
  #lookingSince: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Before a look: where to begin in each line. */
  begin(lines: readonly number[]): Place[] {
    const now = this.#clock.monotonic();
    if (now >= this.#fullLookAt && this.#lookingSince === null) {
      this.#places.clear();
      this.#lookingSince = now;
    }
    return lines.map((line) => this.#places.get(line) ?? START);
  }

  /** After a look at store time `now` that took everything up to these places. */
  reached(line: number, place: Place, now: number): void {
    this.#places.set(line, place.dueAt > now - LAG_MS ? { dueAt: now - LAG_MS, seq: 0 } : place);
  }

  /** After a look at store time `now` that found nothing more in these lines. */
  emptied(lines: readonly number[], now: number): void {
    for (const line of lines) this.#places.set(line, { dueAt: now - LAG_MS, seq: 0 });
  }

  end(): void {
    if (this.#lookingSince === null) return;
    const now = this.#clock.monotonic();
    this.#fullLookAt = now + Math.max(FULL_LOOK_MS, (now - this.#lookingSince) / LARGEST_PART);
    this.#lookingSince = null;
  }

  /** Something was put back to where it stood: begin anew. */
  forget(): void {
    this.#places.clear();
  }
}
