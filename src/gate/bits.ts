/*
 * Small sets of hashes. A set of jobs has 64 bits in two numbers, a set of workers 32 in one: distinct members are counted
 * closely enough up to about twenty, and two sets merge with `|`, in SQL too.
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

export function workerBit(worker: string): number {
  return (1 << ((hash(worker) >>> 8) & 31)) >>> 0;
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

export function count(bits: number): number {
  let left = bits >>> 0;
  let ones = 0;
  for (; left !== 0; ones++) left = (left & (left - 1)) >>> 0;
  return ones;
}
