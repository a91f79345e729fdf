import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../clock.ts';
import type { Database } from '../connection/database.ts';
import { type Found, type Position, type Range, ScanCursors, type Scanned } from './scan-cursor.ts';

const plainOne: Scanned = { id: 7, resource: null };
const other: Scanned = { id: 8, resource: null };
const keyed: Scanned = { id: 9, resource: 'smtp' };
const NOW = 1_000_000;

type Answer = [
  partition: number,
  scannedTo: number,
  now: number,
  dueAt: number | null,
  seq: number | null,
  until: number,
];

/** A server whose back-scans are answered by hand, and a clock to go with it. */
class Scans {
  time = 0;
  longestMs = 0;
  readonly asked: { readonly partitions: string; readonly below: string; answer(rows: Answer[] | Error): void }[] = [];
  readonly cursors: ScanCursors = new ScanCursors({
    clock: { ...systemClock, monotonic: () => this.time },
    statementTimeoutMs: 400,
    lookUp: (_sql: string, [partitions, below, longestMs]: [string, string, number]) =>
      new Promise((resolve, reject) => {
        this.longestMs = longestMs;
        const answer = (rows: Answer[] | Error): void => (rows instanceof Error ? reject(rows) : resolve(rows));
        this.asked.push({ partitions, below, answer });
      }),
  } as unknown as Database);

  /** Lets everything run that is not waiting for an answer. */
  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async answer(...rows: Answer[]): Promise<void> {
    await this.settle();
    const scan = this.asked.shift();
    if (scan === undefined) throw new Error('expected a back-scan under way, got none');
    scan.answer(rows);
    await this.settle();
  }

  /** What a claim reads of these partitions: after a back-scan, if that is worth waiting for. */
  async read(partitions = [plainOne]): Promise<Range[]> {
    const scan = this.cursors.backScan();
    const ranges = await this.cursors.ranges(partitions);
    return (await scan) ? this.cursors.ranges(partitions) : ranges;
  }

  /** The same when no back-scan is expected. */
  async range(partition = plainOne): Promise<Range> {
    const [range] = await this.read([partition]);
    expect(this.asked).toEqual([]);
    return range as Range;
  }

  /** A claim at store time `now` that took jobs of a range up to one, or found nothing more in it. */
  advance(range: Range, last: Position | null, now: number, partition = plainOne.id): void {
    const found: Found = { partition, range, last, isExhausted: last === null };
    this.cursors.advance([found], now, '50:50:');
  }

  /** A cursor of a partition that was empty, and has just been scanned. */
  static async atPresent(): Promise<Scans> {
    const scans = new Scans();
    const first = scans.read();
    await scans.answer(nothing());
    await first;
    return scans;
  }

  /** The same, after a back-scan that was slow. */
  static async slow(): Promise<Scans> {
    const scans = await Scans.atPresent();
    scans.time += 1_000;
    const waits = scans.read();
    await scans.settle();
    scans.time += 500;
    await scans.answer(nothing());
    await waits;
    return scans;
  }
}

const nothing = (id = plainOne.id): Answer => [id, 0, NOW, null, null, 0];
const present: Position = { dueAt: NOW - 200, seq: 0 };

describe('the position of a cursor', () => {
  it('begins before the first job that waits', async () => {
    const scans = new Scans();
    const first = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, NOW + 1]);
    expect((await first)[0]).toMatchObject({ from: { dueAt: 500, seq: 11 }, missed: null });
  });

  it('begins a moment ago where no job waits', async () => {
    const scans = await Scans.atPresent();
    expect(await scans.range()).toMatchObject({ from: present, missed: null });
  });

  it('begins at the start of a partition with a resource, without a back-scan', async () => {
    const scans = await Scans.atPresent();
    expect(await scans.range(keyed)).toMatchObject({ from: { dueAt: 0, seq: -1 }, missed: null });
  });

  it('moves to the last job that was taken, but not closer to the present than a moment', async () => {
    const scans = await Scans.atPresent();
    scans.advance(await scans.range(), { dueAt: NOW + 100, seq: 3 }, NOW + 1_000);
    expect((await scans.range()).from).toEqual({ dueAt: NOW + 100, seq: 3 });
    scans.advance(await scans.range(), { dueAt: NOW + 900, seq: 4 }, NOW + 1_000);
    expect((await scans.range()).from).toEqual({ dueAt: NOW + 800, seq: 0 });
    scans.advance(await scans.range(), null, NOW + 2_000);
    expect((await scans.range()).from).toEqual({ dueAt: NOW + 1_800, seq: 0 });
  });

  it('does not pass what transactions in flight may still write', async () => {
    const scans = await Scans.atPresent();
    const found = { partition: plainOne.id, range: await scans.range(), last: null, isExhausted: true };
    scans.cursors.advance([found], NOW, '50:50:');
    scans.cursors.advance([found], NOW + 1_000, '50:51:50');
    expect((await scans.range()).from).toEqual(present);
  });

  it('stays where it is when a claim took nothing and more is due', async () => {
    const scans = await Scans.atPresent();
    const found = { partition: plainOne.id, range: await scans.range(), last: null, isExhausted: false };
    scans.cursors.advance([found], NOW + 5_000, '50:50:');
    expect((await scans.range()).from).toEqual(present);
  });

  it('is forgotten when many other partitions were read since', async () => {
    const scans = await Scans.atPresent();
    const many = Array.from({ length: 5_000 }, (_, index) => ({ id: 100 + index, resource: 'host' }));
    await scans.cursors.ranges(many);
    const again = scans.cursors.ranges([plainOne]);
    await scans.answer([plainOne.id, 0, NOW, 300, 2, NOW + 1]);
    expect((await again)[0]?.from).toEqual({ dueAt: 300, seq: 1 });
  });
});

describe('a back-scan', () => {
  it('runs once a second beside a claim, and what it finds is read alone', async () => {
    const scans = await Scans.atPresent();
    scans.time = 999;
    await scans.range();
    scans.time = 1_000;
    const waits = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, 600]);
    const [missed] = (await waits) as [Range];
    expect(missed).toMatchObject({ from: { dueAt: 500, seq: 11 }, until: { dueAt: 600, seq: 0 } });
    scans.advance(missed, null, NOW);
    expect(await scans.range()).toMatchObject({ from: present, missed: null });
  });

  it('runs before the next claim when another process has put a job behind the present', async () => {
    const scans = await Scans.atPresent();
    scans.time = 1_000;
    const first = scans.read();
    await scans.settle();
    scans.time += 10;
    await scans.answer(nothing());
    await first;
    await scans.range();
    scans.cursors.scanSoon();
    // 10 ms are a twentieth of 200 ms.
    scans.time += 199;
    await scans.range();
    scans.time += 1;
    const second = scans.read();
    await scans.settle();
    // The one under way may have passed the job.
    scans.cursors.scanSoon();
    await scans.answer(nothing());
    await second;
    const third = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, 600]);
    expect((await third)[0]?.missed).not.toBeNull();
    await scans.range();
  });

  it('is not waited for while it is slow, and then runs less often', async () => {
    const scans = await Scans.slow();
    // 500 ms are a twentieth of ten seconds.
    scans.time += 9_999;
    expect((await scans.range()).missed).toBeNull();
    scans.time += 1;
    expect((await scans.read())[0]?.missed).toBeNull();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, 600]);
    expect((await scans.range()).missed).not.toBeNull();
  });

  it('goes on where it stopped, and then begins again with all partitions', async () => {
    const scans = await Scans.atPresent();
    const second = scans.cursors.ranges([other]);
    await scans.answer(nothing(other.id));
    await second;
    const scan = async (...answers: Answer[]): Promise<{ partitions: string; below: string }> => {
      scans.time += 1_000;
      const waits = scans.read();
      await scans.settle();
      const { partitions, below } = scans.asked[0] as (typeof scans.asked)[number];
      await scans.answer(...answers);
      await waits;
      return { partitions, below };
    };
    const below = NOW - 199;
    expect(await scan([other.id, below, NOW, null, null, 0], [plainOne.id, 400, NOW, null, null, 0])).toEqual({
      partitions: '{7,8}',
      below: `{${below},${below}}`,
    });
    expect(await scan(nothing(other.id), [plainOne.id, 300, NOW, null, null, 0])).toMatchObject({
      below: `{${below},400}`,
    });
    expect(await scan(nothing())).toEqual({ partitions: '{7}', below: '{300}' });
    expect(await scan(nothing(), nothing(other.id))).toEqual({ partitions: '{8,7}', below: `{${below},${below}}` });
  });

  it('ends long before the server would cancel the statement', async () => {
    expect((await Scans.atPresent()).longestMs).toBe(100);
  });

  it('that fails leaves the claim alone, and is tried again', async () => {
    const scans = await Scans.atPresent();
    scans.time = 1_000;
    const waits = scans.read();
    await scans.settle();
    scans.asked.shift()?.answer(new Error('statement timeout'));
    expect((await waits)[0]?.missed).toBeNull();
    scans.time = 2_000;
    const again = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, 600]);
    expect((await again)[0]?.missed).not.toBeNull();
  });

  it('leaves alone what lies after the position', async () => {
    const scans = await Scans.atPresent();
    scans.time = 1_000;
    const waits = scans.read();
    await scans.answer([plainOne.id, 0, NOW, NOW - 200, 5, NOW - 199]);
    expect((await waits)[0]?.missed).toBeNull();
  });

  it('finds a range that ends where the position was', async () => {
    const scans = await Scans.atPresent();
    scans.time = 1_000;
    const waits = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, NOW - 199]);
    expect((await waits)[0]?.until).toEqual(present);
  });
});

describe('a missed range', () => {
  it('is read on from the last job that was taken, and the position stays', async () => {
    const scans = await Scans.atPresent();
    scans.cursors.rewind(plainOne.id, 500);
    scans.advance(await scans.range(), { dueAt: 500, seq: 20 }, NOW);
    const rest = await scans.range();
    expect(rest).toMatchObject({ from: { dueAt: 500, seq: 20 }, until: { dueAt: 500 } });
    scans.advance(rest, null, NOW);
    expect(await scans.range()).toMatchObject({ from: present, missed: null });
  });

  it('covers a job that was put back, whether back-scans are slow or not', async () => {
    for (const scans of [await Scans.atPresent(), await Scans.slow()]) {
      scans.cursors.rewind(plainOne.id, 500, 12);
      expect(await scans.range()).toMatchObject({ from: { dueAt: 500, seq: 11 }, until: { dueAt: 500, seq: 12 } });
    }
  });

  it('grows to cover all missed jobs', async () => {
    const scans = await Scans.atPresent();
    for (const dueAt of [500, 700, 600]) scans.cursors.rewind(plainOne.id, dueAt, 12);
    expect(await scans.range()).toMatchObject({ from: { dueAt: 500, seq: 11 }, until: { dueAt: 700, seq: 12 } });
  });

  it('is not lost to a back-scan that was under way', async () => {
    const scans = await Scans.atPresent();
    scans.time = 1_000;
    const waits = scans.read();
    await scans.settle();
    scans.cursors.rewind(plainOne.id, 500, 12);
    await scans.answer([plainOne.id, 0, NOW, 600, 1, 650]);
    expect((await waits)[0]).toMatchObject({ from: { dueAt: 500, seq: 11 }, until: { dueAt: 650, seq: 0 } });
  });

  it('stays when a claim that began before its last job came found nothing there', async () => {
    const scans = await Scans.atPresent();
    scans.cursors.rewind(plainOne.id, 500, 12);
    const before = await scans.range();
    scans.cursors.rewind(plainOne.id, 500, 12);
    scans.advance(before, null, NOW);
    expect((await scans.range()).from).toEqual({ dueAt: 500, seq: 11 });
  });

  it('stays as it is when a claim that began before its last job came took one of its jobs', async () => {
    const scans = await Scans.atPresent();
    scans.cursors.rewind(plainOne.id, 500, 12);
    const before = await scans.range();
    scans.cursors.rewind(plainOne.id, 400, 3);
    scans.advance(before, { dueAt: 500, seq: 12 }, NOW);
    expect((await scans.range()).from).toEqual({ dueAt: 400, seq: 2 });
  });

  it('is kept for a job after the position, which a claim under way may pass', async () => {
    const scans = await Scans.atPresent();
    const before = await scans.range();
    scans.cursors.rewind(plainOne.id, NOW - 100, 4);
    scans.advance(before, { dueAt: NOW, seq: 9 }, NOW + 1_000);
    expect((await scans.range()).from).toEqual({ dueAt: NOW - 100, seq: 3 });
  });

  it('that lies after the position is not read before what lies between them', async () => {
    const scans = await Scans.atPresent();
    scans.cursors.rewind(plainOne.id, NOW + 5_000, 4);
    expect(await scans.range()).toMatchObject({ from: present, missed: null });
  });

  it('is not needed in a partition that was never read', async () => {
    const scans = new Scans();
    scans.cursors.rewind(plainOne.id, 500, 12);
    const first = scans.read();
    await scans.answer([plainOne.id, 0, NOW, 500, 12, NOW + 1]);
    expect((await first)[0]).toMatchObject({ from: { dueAt: 500, seq: 11 }, missed: null });
  });
});
