import type { Partition } from './partitions.ts';

/** A process that claims behind more gates than this reads some of their partitions from the start again. */
const MOST_RESOURCES = 1_000;
const MOST_TURNS = 10_000;

/** The gated partitions that this process has seen, by resource; and when it last took a job from each of those, and of limited ones. */
export class GatedPartitions {
  #byResource: Map<string, readonly Partition[]> = new Map();
  #turns: Map<number, number> = new Map();
  #turn = 0;

  of(resource: string): readonly Partition[] {
    return this.#byResource.get(resource) ?? [];
  }

  set(resource: string, partitions: readonly Partition[]): void {
    if (this.#byResource.size >= MOST_RESOURCES) this.#byResource = new Map();
    this.#byResource.set(resource, partitions);
  }

  /** The least recently served first. */
  inTurn<Item extends { readonly partition: Partition }>(items: readonly Item[]): Item[] {
    const turnOf = ({ partition: { id } }: Item): number => this.#turns.get(id) ?? 0;
    return [...items].sort((a, b) => turnOf(a) - turnOf(b));
  }

  served({ id }: Partition): void {
    if (this.#turns.size >= MOST_TURNS) this.#turns = new Map();
    this.#turns.set(id, ++this.#turn);
  }
}
