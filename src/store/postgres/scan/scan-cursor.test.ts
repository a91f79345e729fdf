import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../clock.ts';
import type { Database } from '../connection/database.ts';
import type { Line } from '../names.ts';
import { type Place, Reading, type Stretch } from './scan-cursor.ts';

const line: Line = { id: 7, queue: 'default', resource: '', lane: 'fresh', priority: 0 };
const other: Line = { ...line, id: 8, priority: 1 };
const NOW = 1_000_000;

type Answer = [line: number, lookedTo: number, now: number, dueAt: number | null, seq: number | null, until: number];

/** A server whose looks are answered by hand, and a clock to go with it. */
class Looks {
  time = 0;
  readonly asked: { readonly lines: string; readonly below: string; answer(rows: Answer[]): void }[] = [];
  readonly reading: Reading = new Reading({
    clock: { ...systemClock, monotonic: () => this.time },
    query: (_sql: string, [lines, below]: [string, string]) =>
      new Promise((answer) => {
        this.asked.push({ lines, below, answer });
      }),
  } as unknown as Database);

  /** Lets everything run that is not waiting for an answer. */
  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async answer(...rows: Answer[]): Promise<void> {
    await this.settle();
    const look = this.asked.shift();
    if (look === undefined) throw new Error('nobody looked');
    look.answer(rows);
    await this.settle();
  }

  /** What a claim reads in the end: after a look, if that is worth waiting for. */
  async read(lines = [line]): Promise<Stretch[]> {
    const look = this.reading.look();
    const stretches = await this.reading.stretches(lines);
    return (await look) ? this.reading.stretches(lines) : stretches;
  }

  /** The same, without a look. */
  async stretches(lines = [line]): Promise<Stretch[]> {
    const stretches = await this.read(lines);
    expect(this.asked).toEqual([]);
    return stretches;
  }

  /** Known to be empty up to now, and just looked at. */
  static async emptied(): Promise<Looks> {
    const looks = new Looks();
    const first = looks.read();
    await looks.answer(nothing());
    await first;
    return looks;
  }

  /** The same, after a look that was slow, so that nobody waits for the next. */
  static async slow(): Promise<Looks> {
    const looks = await Looks.emptied();
    looks.time += 1_000;
    const waits = looks.read();
    await looks.settle();
    looks.time += 500;
    await looks.answer(nothing());
    await waits;
    return looks;
  }
}

const nothing = (id = line.id): Answer => [id, 0, NOW, null, null, 0];
const from = (stretches: readonly Stretch[]): Place[] => stretches.map((stretch) => stretch.from);

describe('how far a line has been read', () => {
  it('begins before the first job that waits in it', async () => {
    const looks = new Looks();
    const first = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, NOW + 1]);
    expect(from(await first)).toEqual([{ dueAt: 500, seq: 11 }]);
  });

  it('begins a moment ago where nothing waits', async () => {
    const looks = await Looks.emptied();
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW - 200, seq: 0 }]);
  });

  it('goes on where a claim ended, but never closer than a moment', async () => {
    const looks = await Looks.emptied();
    const { reading } = looks;
    reading.reached(await looks.stretches(), line.id, { dueAt: NOW + 100, seq: 3 }, NOW + 1_000);
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW + 100, seq: 3 }]);
    reading.reached(await looks.stretches(), line.id, { dueAt: NOW + 900, seq: 4 }, NOW + 1_000);
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW + 800, seq: 0 }]);
    reading.emptied(await looks.stretches(), NOW + 2_000);
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW + 1_800, seq: 0 }]);
  });

  it('is looked at again after a while, though what was found there has not been read', async () => {
    const looks = await Looks.emptied();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, 600]);
    // A claim takes some of it, and no later one gets as far.
    looks.reading.reached(await waits, line.id, { dueAt: 550, seq: 20 }, NOW);
    looks.time = 2_000;
    await looks.stretches();
    looks.time = 3_000;
    const again = looks.read();
    await looks.answer([line.id, 0, NOW, 300, 4, 400]);
    expect(from(await again)[0]).toEqual({ dueAt: 300, seq: 3 });
  });

  it('is looked at once a second, beside a claim', async () => {
    const looks = await Looks.emptied();
    looks.time = 999;
    await looks.stretches();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, 600]);
    const [overlooked, rest] = await waits;
    expect(overlooked).toEqual({ line, from: { dueAt: 500, seq: 11 }, until: { dueAt: 600, seq: 0 } });
    expect(rest?.from).toEqual({ dueAt: NOW - 200, seq: 0 });
  });

  it('does not wait for a look while looks are slow, and looks less often', async () => {
    const looks = await Looks.slow();
    // 500 ms are a twentieth of ten seconds.
    looks.time += 9_999;
    expect(await looks.stretches()).toHaveLength(1);
    looks.time += 1;
    expect(await looks.read()).toHaveLength(1);
    expect(await looks.read()).toHaveLength(1);
    await looks.answer([line.id, 0, NOW, 500, 12, 600]);
    expect(await looks.stretches()).toHaveLength(2);
    looks.time += 1_000;
    const waits = looks.read([line, other]);
    await looks.answer(nothing(other.id));
    expect(await waits).toHaveLength(3);
  });

  it('is looked at in parts where that takes long, each line in its turn', async () => {
    const looks = await Looks.slow();
    const both = looks.read([line, other]);
    await looks.answer(nothing(other.id));
    await both;
    const look = async (...answers: Answer[]): Promise<object> => {
      looks.time += 1_000_000;
      await looks.read([line, other]);
      const { lines, below } = looks.asked[0] as (typeof looks.asked)[number];
      looks.time += 1_000;
      await looks.answer(...answers);
      return { lines, below };
    };
    const mark = NOW - 199;
    expect(await look([line.id, 400, NOW, null, null, 0], [other.id, mark, NOW, null, null, 0])).toEqual({
      lines: '{7,8}',
      below: `{${mark},${mark}}`,
    });
    expect(await look(nothing(), [other.id, mark, NOW, null, null, 0])).toEqual({
      lines: '{7,8}',
      below: `{400,${mark}}`,
    });
    expect(await look([other.id, 300, NOW, 350, 1, 360])).toEqual({ lines: '{8}', below: `{${mark}}` });
    // What was found is read first, and the others are looked at meanwhile.
    expect(await look(nothing())).toEqual({ lines: '{7}', below: `{${mark}}` });
    looks.reading.emptied(await looks.stretches([line, other]), NOW);
    expect(await look(nothing(), nothing(other.id))).toEqual({ lines: '{7,8}', below: `{${mark},300}` });
  });
});

describe('what was overlooked', () => {
  async function found(): Promise<Looks> {
    const looks = await Looks.emptied();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, 600]);
    await waits;
    return looks;
  }

  it('is read on, and the mark stays where it is', async () => {
    const looks = await found();
    looks.reading.reached(await looks.stretches(), line.id, { dueAt: 550, seq: 20 }, NOW);
    expect(from(await looks.stretches())).toEqual([
      { dueAt: 550, seq: 20 },
      { dueAt: NOW - 200, seq: 0 },
    ]);
  });

  it('is done with once a claim has got beyond it', async () => {
    const looks = await found();
    looks.reading.reached(await looks.stretches(), line.id, { dueAt: NOW - 100, seq: 90 }, NOW + 500);
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW - 100, seq: 90 }]);
  });

  it('is done with once a claim has found nothing more', async () => {
    const looks = await found();
    looks.reading.emptied(await looks.stretches(), NOW);
    expect(await looks.stretches()).toHaveLength(1);
  });

  it('stays when the claim that found nothing more began before', async () => {
    const looks = await Looks.emptied();
    const before = await looks.stretches();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, 600]);
    await waits;
    looks.reading.emptied(before, NOW);
    looks.reading.reached(before, line.id, { dueAt: NOW, seq: 1 }, NOW + 1_000);
    expect(from(await looks.stretches())).toEqual([
      { dueAt: 500, seq: 11 },
      { dueAt: NOW, seq: 1 },
    ]);
  });

  it('ends where the mark was, should it lie right before that', async () => {
    const looks = await Looks.emptied();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, NOW - 199]);
    expect((await waits)[0]?.until).toEqual({ dueAt: NOW - 200, seq: 0 });
  });

  it('is not what lies after the mark', async () => {
    const looks = await Looks.emptied();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.answer([line.id, 0, NOW, NOW - 200, 5, NOW - 199]);
    expect(await waits).toHaveLength(1);
  });

  it('becomes one with the rest when the mark goes back over it', async () => {
    const looks = await found();
    looks.reading.reached(
      [{ line, from: { dueAt: 0, seq: 0 }, until: { dueAt: 9, seq: 9 } }],
      line.id,
      { dueAt: 560, seq: 1 },
      NOW,
    );
    expect(from(await looks.stretches())).toEqual([{ dueAt: 500, seq: 11 }]);
  });
});

describe('what was put back to where it stood', () => {
  const place = { dueAt: 500, seq: 12 };
  const itself = { line, from: { dueAt: 500, seq: 11 }, until: place };

  it('is read by the next claim, whether looks are slow or not', async () => {
    for (const looks of [await Looks.emptied(), await Looks.slow()]) {
      looks.reading.putBack(line.id, place);
      expect((await looks.stretches())[0]).toEqual(itself);
      looks.reading.emptied(await looks.stretches(), NOW);
      expect(await looks.stretches()).toHaveLength(1);
    }
  });

  it('is read together with what else was overlooked', async () => {
    const looks = await Looks.emptied();
    for (const dueAt of [500, 700, 600]) looks.reading.putBack(line.id, { dueAt, seq: 12 });
    expect((await looks.stretches())[0]).toEqual({ ...itself, until: { dueAt: 700, seq: 12 } });
    looks.time = 1_000;
    const waits = looks.read([line, other]);
    await looks.answer(nothing(other.id));
    expect((await waits)[0]).toEqual({ ...itself, until: { dueAt: 700, seq: 12 } });
  });

  it('is not lost to a look that was under way', async () => {
    const looks = await Looks.emptied();
    looks.time = 1_000;
    const waits = looks.read();
    await looks.settle();
    looks.reading.putBack(line.id, place);
    await looks.answer([line.id, 0, NOW, 600, 1, 650]);
    expect((await waits)[0]).toEqual({ ...itself, until: { dueAt: 650, seq: 0 } });
  });

  it('stays when a claim that was under way found nothing more there', async () => {
    const looks = await Looks.emptied();
    looks.reading.putBack(line.id, place);
    const before = await looks.stretches();
    looks.reading.putBack(line.id, place);
    looks.reading.emptied(before, NOW);
    expect((await looks.stretches())[0]).toEqual(itself);
  });

  it('is found when a claim that was under way takes the mark beyond it', async () => {
    const looks = await Looks.emptied();
    const before = await looks.stretches();
    const later = { dueAt: NOW - 100, seq: 4 };
    looks.reading.putBack(line.id, later);
    expect(from(await looks.stretches())).toEqual([{ dueAt: NOW - 200, seq: 0 }]);
    looks.reading.reached(before, line.id, { dueAt: NOW, seq: 9 }, NOW + 1_000);
    expect(from(await looks.stretches())).toEqual([
      { dueAt: NOW - 100, seq: 3 },
      { dueAt: NOW, seq: 9 },
    ]);
  });

  it('needs nothing in a line that was never read', async () => {
    const looks = new Looks();
    looks.reading.putBack(line.id, place);
    const first = looks.read();
    await looks.answer([line.id, 0, NOW, 500, 12, NOW + 1]);
    expect(from(await first)).toEqual([{ dueAt: 500, seq: 11 }]);
  });
});
