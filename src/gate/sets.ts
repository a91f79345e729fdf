/*
 * Small sets of hashes. A set of jobs has 64 bits in two numbers: distinct jobs are counted closely enough up to about
 * twenty. A set of workers holds whole hashes, because the question there is whether a second worker fails too, and two of
 * three workers would share one of 32 bits in every tenth deployment. More than four are never asked for.
 */

export type JobBits = readonly [low: number, high: number];

export const noJobs: JobBits = [0, 0];

/** FNV-1a, 32 bits. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  // The low bits of FNV alone are poor on texts that differ in one place.
  value ^= value >>> 15;
  return Math.imul(value, 0x2c1b3c6d) >>> 0;
}

export function jobBit(jobId: string): JobBits {
  const place = (hash(jobId) >>> 8) & 63;
  return place < 32 ? [(1 << place) >>> 0, 0] : [0, (1 << (place - 32)) >>> 0];
}

export type WorkerSet = readonly number[];

const MOST_WORKERS = 4;

/** What a gate knows a worker by; never 0. */
export function workerKey(worker: string): number {
  return hash(worker) || 1;
}

export function joinWorkers(a: WorkerSet, b: WorkerSet): WorkerSet {
  return [...new Set([...a, ...b])].slice(0, MOST_WORKERS);
}

export function join(a: JobBits, b: JobBits): JobBits {
  return [(a[0] | b[0]) >>> 0, (a[1] | b[1]) >>> 0];
}

export function overlaps(a: JobBits, b: JobBits): boolean {
  return (a[0] & b[0]) !== 0 || (a[1] & b[1]) !== 0;
}

/** True when every member of `part` is in `whole`, and it has one. */
export function isWithin(part: JobBits, whole: JobBits): boolean {
  return countJobs(part) > 0 && (part[0] & ~whole[0]) === 0 && (part[1] & ~whole[1]) === 0;
}

export function countJobs(jobs: JobBits): number {
  return count(jobs[0]) + count(jobs[1]);
}

function count(bits: number): number {
  let left = bits >>> 0;
  let ones = 0;
  for (; left !== 0; ones++) left = (left & (left - 1)) >>> 0;
  return ones;
}
