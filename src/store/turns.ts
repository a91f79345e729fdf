import type { Lane } from '../job.ts';
import { parentOf } from './gates.ts';

/*
 * Turns are taken in two levels. First by **lines**: the waiting jobs of one queue, lane and priority that share a job name
 * (in the lanes retry and redrive, where partitions have one) or the name of their resource without its key. Then, inside a
 * line, by partitions. So keys, which strangers choose, never take the turns of another name.
 *
 * Lines are as few as definitions. Which of them was served last is remembered by each process alone: that is enough for
 * them to alternate, and costs no write.
 */

/** The line of a partition, among those of one queue, lane and priority; '' for fresh jobs without a resource. */
export function lineIn(
  lane: Lane,
  { name, resource }: { readonly name: string; readonly resource: string | null },
): string {
  if (lane === 'retry' || lane === 'redrive') return name;
  return resource === null ? '' : rootOf(resource);
}

/** The name of a resource without its key. */
export function rootOf(resource: string): string {
  return parentOf(resource) ?? resource;
}

/** A process that has served more lines than this lets them begin again. */
const MOST_LINES = 10_000;

/** Which lines were served last. A line that has not been served comes first. */
export class Turns {
  readonly #servedIn: Map<string, number> = new Map();
  #turn = 0;

  /** The least recently served first. */
  inOrder<Item>(items: readonly Item[], lineOf: (item: Item) => string): readonly Item[] {
    if (items.length < 2) return items;
    const turnOf = (item: Item): number => this.#servedIn.get(lineOf(item)) ?? 0;
    return [...items].sort((a, b) => turnOf(a) - turnOf(b));
  }

  served(line: string): void {
    if (this.#servedIn.size >= MOST_LINES) this.#servedIn.clear();
    this.#servedIn.set(line, ++this.#turn);
  }
}
