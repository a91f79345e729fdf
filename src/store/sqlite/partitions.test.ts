import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { claim, claimOne, enqueueOne, HOUR, idsOf, MINUTE, newJob, only } from '../conformance/builders.ts';
import { SqliteStore } from './store.ts';

describe('partitions, between processes whose clocks differ', () => {
  it('that are admissible by the clock of one are left alone by the other until their first job is due there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const path = join(folder, 'jobs.db');
    const clocks = [new VirtualClock(), new VirtualClock()] as const;
    await clocks[0].advance(HOUR);
    const ahead = await SqliteStore.open({ path, inline: clocks[0] });
    const behind = await SqliteStore.open({ path, inline: clocks[1] });
    const first = await enqueueOne(behind);
    const later = await enqueueOne(behind, { delayMs: 30 * MINUTE });
    expect((await claimOne(ahead)).id).toBe(first);
    const { jobs, nextDueAt, now } = await claim(behind);
    expect([jobs, nextDueAt]).toEqual([[], now + 30 * MINUTE]);
    await clocks[1].advance(30 * MINUTE);
    expect(idsOf((await claim(behind)).jobs)).toEqual([later]);
    await ahead.close();
    await behind.close();
    rmSync(folder, { recursive: true });
  });
});

describe('a job that is due before the epoch', () => {
  it('is claimed at once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const store = await SqliteStore.open({ path: join(folder, 'jobs.db'), inline: new VirtualClock() });
    const job = newJob({ dueAt: Date.UTC(-10_000, 0, 1) });
    await store.enqueue([job, newJob({ resource: 'smtp' })]);
    const claimed = only((await claim(store, { limit: 2 })).jobs.filter(({ id }) => id === job.id));
    expect(claimed.dueAt).toBe(0);
    await store.close();
    rmSync(folder, { recursive: true });
  });
});
