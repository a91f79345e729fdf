import { plain } from '../connection/arrays.ts';
import type { Database } from '../connection/database.ts';
import type { Line } from '../names.ts';
import { InFlight } from './in-flight.ts';

const LOOK = 'SELECT * FROM @.overlooked($1::int[], $2::bigint[], $3)';

/** How often to look for what was overlooked; less often when that takes long. */
const LOOK_EVERY_MS = 1_000;
/** Looks take no more than this part of the time. */
export const LARGEST_PART = 0.05;
/** Beyond this a look goes on in the next one. */
const LONGEST_LOOK_MS = 1_000;
/** Claims wait for a look, unless the last one took longer than this. */
const PATIENCE_MS = 50;

/** A place in a line, which is in the order of due times and then of acceptance. */
export interface Place {
  readonly dueAt: number;
  readonly seq: number;
}

const FAR_AWAY: Place = { dueAt: Number.MAX_SAFE_INTEGER, seq: 0 };

/** A part of a line: what comes after one place, up to another. */
export interface Stretch {
  readonly line: Line;
  readonly from: Place;
  readonly until: Place;
}

interface Progress {
  /** Everything up to here is gone, as far as is known. */
  mark: Place;
  /** Where something before the mark was found; to be read first. */
  overlooked: Omit<Stretch, 'line'> | null;
  /** A look goes back from the mark. It has got to this due time; null when none is under way. */
  lookedTo: number | null;
  /** A look has left it out, for what is still to be read there. */
  isLeftOut: boolean;
}

type Found = [line: number, lookedTo: number, now: number, dueAt: number | null, seq: number | null, until: number];

/**
 * How far each line has been read. A row that was claimed stays in the index until it is vacuumed, and while anybody
 * anywhere in the database holds an old snapshot it cannot be: a claim that began at the start of its line would walk
 * over every job that went before. So it begins where the last one ended. That is only a hint: a row may be committed
 * late, or handed back to its old place. So now and then somebody looks for such rows. Where dead rows have piled up a
 * look walks over them and is slow, so it goes on beside the claims, a part at a time, and no claim waits for it.
 */
export class Reading {
  readonly #db: Database;
  readonly #lines: Map<number, Progress> = new Map();
  readonly #inFlight: InFlight = new InFlight();
  #lookAt = 0;
  #looking: Promise<boolean> | null = null;
  #isSlow = false;
  /** Lines that the look under way has not been through. */
  #left: Set<number> = new Set();

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Before each claim: looks for what was overlooked, when it is time, and answers whether something was. Null when
   * nobody looks, or it would take too long to wait for.
   */
  look(): Promise<boolean> | null {
    if (this.#db.clock.monotonic() >= this.#lookAt) this.#looking ??= this.#lookOnce();
    return this.#isSlow ? null : this.#looking;
  }

  /** What a claim should read of these lines, in their order. */
  async stretches(lines: readonly Line[]): Promise<Stretch[]> {
    const unknown = lines.filter(({ id }) => !this.#lines.has(id)).map(({ id }) => id);
    if (unknown.length > 0) await this.#look(unknown);
    return lines.flatMap((line) => {
      const progress = this.#lines.get(line.id) as Progress;
      const { mark, overlooked } = progress;
      const rest = { line, from: mark, until: FAR_AWAY };
      // A claim under way may yet take the mark beyond what comes after it now.
      if (overlooked === null || !isBefore(overlooked.from, mark)) return [rest];
      if (!isBefore(mark, overlooked.until)) return [{ line, ...overlooked }, rest];
      // Another claim, which began earlier, has taken the mark back: no row may lie in two stretches.
      progress.mark = overlooked.from;
      progress.overlooked = null;
      return [{ ...rest, from: progress.mark }];
    });
  }

  /** After each claim: the store's time then, and the snapshot under which it read. */
  saw(now: number, snapshot: string): void {
    this.#inFlight.see(now, snapshot);
  }

  /** After a claim at store time `now` that took everything of a line up to this place. */
  reached(read: readonly Stretch[], line: number, place: Place, now: number): void {
    const progress = this.#lines.get(line) as Progress;
    const given = read.find((stretch) => stretch.line.id === line && stretch.until !== FAR_AWAY);
    const isStillThere = given !== undefined && progress.overlooked?.until === given.until;
    if (given !== undefined && !isBefore(given.until, place)) {
      if (isStillThere) progress.overlooked = { from: place, until: given.until };
      return;
    }
    if (isStillThere) progress.overlooked = null;
    progress.mark = this.#behind(place, now);
  }

  /** After a claim at store time `now` that found nothing more in these stretches. */
  emptied(read: readonly Stretch[], now: number): void {
    for (const { line, until } of read) {
      const progress = this.#lines.get(line.id) as Progress;
      if (until === FAR_AWAY) progress.mark = this.#behind(FAR_AWAY, now);
      else if (progress.overlooked?.until === until) progress.overlooked = null;
    }
  }

  /** A job was put back to where it stood, which claims may have passed by: the next one should find it. */
  putBack(line: number, { dueAt, seq }: Place): void {
    const progress = this.#lines.get(line);
    // Whoever reads a line for the first time begins with a look.
    if (progress !== undefined) addOverlooked(progress, { dueAt, seq: seq - 1 }, { dueAt, seq });
  }

  async #lookOnce(): Promise<boolean> {
    const { clock } = this.#db;
    const since = clock.monotonic();
    const due = [...this.#lines.keys()].filter((line) => this.#isDue(line));
    let lines = due.filter((line) => this.#left.has(line));
    if (lines.length === 0) {
      lines = due;
      this.#left = new Set(lines);
    }
    // Whatever keeps a look from working meets the claim as well, and is told there.
    const hasFound = await this.#look(lines).catch(() => false);
    const now = clock.monotonic();
    this.#isSlow = now - since > PATIENCE_MS;
    this.#lookAt = now + Math.max(LOOK_EVERY_MS, (now - since) / LARGEST_PART);
    this.#looking = null;
    return hasFound;
  }

  /** What was found in a line is read before more is looked for; but not every claim reads it, so one look is long enough. */
  #isDue(line: number): boolean {
    const progress = this.#lines.get(line) as Progress;
    progress.isLeftOut = progress.overlooked !== null && !progress.isLeftOut;
    return !progress.isLeftOut;
  }

  async #look(lines: readonly number[]): Promise<boolean> {
    if (lines.length === 0) return false;
    let hasFound = false;
    const marks = new Map(lines.map((line) => [line, this.#lines.get(line)?.mark]));
    const below = lines.map((line) => {
      const progress = this.#lines.get(line);
      return progress === undefined ? null : (progress.lookedTo ?? progress.mark.dueAt + 1);
    });
    const found = await this.#db.query<Found>(LOOK, [plain(lines), plain(below), LONGEST_LOOK_MS]);
    for (const [line, lookedTo, now, dueAt, seq, until] of found) {
      const first = dueAt === null ? null : { dueAt, seq: (seq as number) - 1 };
      const progress = this.#lines.get(line) ?? {
        mark: first ?? this.#behind(FAR_AWAY, now),
        overlooked: null,
        lookedTo: null,
        isLeftOut: false,
      };
      this.#lines.set(line, progress);
      progress.lookedTo = lookedTo === 0 ? null : lookedTo;
      if (lookedTo === 0) this.#left.delete(line);
      else this.#left.add(line);
      const mark = marks.get(line);
      if (mark === undefined || first === null || !isBefore(first, mark)) continue;
      const end = { dueAt: until, seq: 0 };
      addOverlooked(progress, first, isBefore(end, mark) ? end : mark);
      hasFound = true;
    }
    return hasFound;
  }

  /** This place, or an earlier one: what was written since may not be committed yet. */
  #behind(place: Place, now: number): Place {
    const dueAt = this.#inFlight.horizon(now);
    return place.dueAt > dueAt ? { dueAt, seq: 0 } : place;
  }
}

function addOverlooked(progress: Progress, from: Place, until: Place): void {
  const { overlooked } = progress;
  progress.overlooked = {
    from: overlooked !== null && isBefore(overlooked.from, from) ? overlooked.from : from,
    // Always a place of its own: claims under way have not seen what was found now, so they may not say it is done with.
    until: { ...(overlooked !== null && isBefore(until, overlooked.until) ? overlooked.until : until) },
  };
}

function isBefore(a: Place, b: Place): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.seq < b.seq);
}
