/** Wall-clock ms with a fraction, comparable between the processes of one machine. */
export function wall(): number {
  return performance.timeOrigin + performance.now();
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** The value that `part` (0 to 1) of all lie at or below: nearest rank, nothing interpolated. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] as number;
}

/** Calls `each` for 0 to count - 1, `inFlight` at a time, until `until` (wall-clock ms); answers how many were done. */
export async function inFlight(
  count: number,
  inFlight: number,
  until: number,
  each: (n: number) => Promise<void>,
): Promise<number> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count && wall() < until) await each(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  return next;
}

export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
}

/** In each round everybody comes `by` places earlier, so that none always runs after the same neighbour. */
export function rotate<T>(items: readonly T[], by: number): T[] {
  return items.map((_, index) => items[(index + by) % items.length] as T);
}
