import { describe, expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { ActiveJob } from './active-job.ts';
import { ActiveJobs } from './active-jobs.ts';
import { Lease } from './lease.ts';

const clock = new VirtualClock();
const leaseOf = (lane: Lane, name = 'job'): Lease =>
  new Lease({ claimedAt: 0, lane, name } as ClaimedJob, 1_000, 0, clock);
const names = (jobs: readonly ActiveJob[]): string[] => jobs.map(({ lease }) => lease.job.name);
const counts = ({ size, buffered, running, settling }: ActiveJobs) => ({ size, buffered, running, settling });

describe('the active jobs of a worker', () => {
  it('are those that were added and are not gone, in whatever order they go', () => {
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      const jobs = new ActiveJobs();
      const all = [0, 1, 2].map(() => jobs.add(leaseOf('fresh')));
      const left = new Set(all);
      for (const index of order) {
        const job = all[index] as ActiveJob;
        jobs.isGone(job);
        left.delete(job);
        expect(new Set(jobs.list())).toEqual(left);
        expect(jobs.size).toBe(left.size);
      }
    }
  });

  it('can be listed while they go', () => {
    const jobs = new ActiveJobs();
    const all = [jobs.add(leaseOf('fresh')), jobs.add(leaseOf('fresh'))];
    const listed = jobs.list();
    for (const job of all) jobs.isGone(job);
    expect(listed).toEqual(all);
  });

  it('are counted by state on their way: buffered, running, settling, gone', () => {
    const jobs = new ActiveJobs();
    const job = jobs.add(leaseOf('fresh'));
    expect(counts(jobs)).toEqual({ size: 1, buffered: 1, running: 0, settling: 0 });
    expect(jobs.takeBuffered(5)).toEqual([job]);
    jobs.runs(job);
    expect(counts(jobs)).toEqual({ size: 1, buffered: 0, running: 1, settling: 0 });
    expect(jobs.listRunning()).toEqual([job]);
    jobs.settles(job, 7);
    expect(counts(jobs)).toEqual({ size: 1, buffered: 0, running: 0, settling: 1 });
    expect(job.settlingSince).toBe(7);
    expect(jobs.listRunning()).toEqual([]);
    jobs.isGone(job);
    expect(counts(jobs)).toEqual({ size: 0, buffered: 0, running: 0, settling: 0 });
  });

  it('go one way only', () => {
    const jobs = new ActiveJobs();
    const job = jobs.add(leaseOf('fresh'));
    jobs.add(leaseOf('fresh'));
    jobs.runs(job);
    expect(() => jobs.runs(job)).toThrow('a job that is running cannot become running');
    jobs.settles(job, 0);
    expect(() => jobs.runs(job)).toThrow(TypeError);
    expect(() => jobs.settles(job, 0)).toThrow(TypeError);
    jobs.isGone(job);
    expect(() => jobs.settles(job, 0)).toThrow(TypeError);
    expect(() => jobs.isGone(job)).toThrow('a job that is gone cannot become gone');
    expect(jobs.size).toBe(1);
  });

  it('tell when none is left, at once when there is none', async () => {
    const jobs = new ActiveJobs();
    await jobs.whenEmpty();
    const job = jobs.add(leaseOf('fresh'));
    let isEmpty = false;
    const both = Promise.all([jobs.whenEmpty(), jobs.whenEmpty()]).then(() => {
      isEmpty = true;
    });
    await clock.advance(0);
    expect(isEmpty).toBe(false);
    jobs.isGone(job);
    await both;
  });
});

describe('the buffer', () => {
  it('gives fresh jobs first, whenever they came, and others in their order', () => {
    const jobs = new ActiveJobs();
    jobs.add(leaseOf('retry', 'a'));
    jobs.add(leaseOf('fresh', 'b'));
    jobs.add(leaseOf('redrive', 'c'));
    jobs.add(leaseOf('fresh', 'd'));
    expect(names(jobs.takeBuffered(1))).toEqual(['b']);
    jobs.add(leaseOf('fresh', 'e'));
    expect(names(jobs.takeBuffered(3))).toEqual(['d', 'e', 'a']);
    expect(names(jobs.takeBuffered(9))).toEqual(['c']);
    expect(jobs.takeBuffered(1)).toEqual([]);
  });

  it('leaves jobs where they are that may not start, and gives those behind them', () => {
    const jobs = new ActiveJobs();
    for (const name of ['a', 'b', 'c', 'd']) jobs.add(leaseOf('fresh', name));
    const notB = ({ lease }: ActiveJob): boolean => lease.job.name !== 'b';
    expect(names(jobs.takeBuffered(2, notB))).toEqual(['a', 'c']);
    expect(names(jobs.takeBuffered(9, notB))).toEqual(['d']);
    expect(names(jobs.takeBuffered(9))).toEqual(['b']);
  });

  it('keeps a suspect for its trial', () => {
    const jobs = new ActiveJobs();
    const suspect = jobs.add(leaseOf('suspect'));
    expect(jobs.takeBuffered(9)).toEqual([]);
    expect(jobs.buffered).toBe(1);
    jobs.runs(suspect);
    expect(jobs.running).toBe(1);
  });

  it('leave the buffer first when they hold others back, whatever their lane', () => {
    const jobs = new ActiveJobs(({ name }) => name.startsWith('first'));
    for (const name of ['fresh', 'first 1']) jobs.add(leaseOf('fresh', name));
    for (const name of ['retry', 'first 2']) jobs.add(leaseOf('retry', name));
    expect(jobs.leavingFirst).toBe(2);
    expect(names(jobs.takeBuffered(3))).toEqual(['first 1', 'first 2', 'fresh']);
    expect(jobs.leavingFirst).toBe(0);
    expect(names(jobs.takeBuffered(3))).toEqual(['retry']);
  });
});
