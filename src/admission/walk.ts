import type { Lane } from '../lane.ts';
import type { Line, PlannedQueue } from './offer.ts';
import { charged, type Flow, nextFlow, type Shares } from './shares.ts';

/*
 * The order in which places are given out: the flow that is owed most, its most urgent priority, the line whose turn it is,
 * the partition whose turn it is in that line. What was served goes to the back of its line, and the line to the back.
 *
 * What has no room once has none for the rest of a plan, because rooms only shrink; so it is dropped for good, and the walk
 * ends after as many steps as there are places and partitions.
 */

export interface WalkedLine<Item> extends Line {
  /** In turn. */
  readonly items: readonly Item[];
}

export interface Choice<Item> extends Flow {
  readonly item: Item;
  /** Nothing else can be chosen before this item is dropped, so it may get many places at once. */
  readonly isOnly: boolean;
}

interface Tier<Item> {
  readonly priority: number;
  readonly lines: Item[][];
}

export class Walk<Item> {
  readonly #queues: readonly PlannedQueue[];
  /** The most urgent tier first. */
  readonly #tiers: Map<string, Map<Lane, Tier<Item>[]>> = new Map();
  #shares: Shares;

  /** `lines` in turn; a lane of `lanes` only. */
  constructor(
    lines: readonly WalkedLine<Item>[],
    queues: readonly PlannedQueue[],
    shares: Shares,
    lanes: readonly Lane[],
  ) {
    this.#queues = queues;
    this.#shares = shares;
    for (const { queue } of queues) this.#tiers.set(queue, new Map());
    for (const { queue, lane, priority, items } of lines) {
      const byLane = this.#tiers.get(queue);
      if (byLane === undefined || !lanes.includes(lane) || items.length === 0) continue;
      const tiers = byLane.get(lane) ?? [];
      byLane.set(lane, tiers);
      const tier = tiers.find((one) => one.priority === priority);
      if (tier) tier.lines.push([...items]);
      else tiers.push({ priority, lines: [[...items]] });
    }
    for (const byLane of this.#tiers.values()) {
      for (const tiers of byLane.values()) tiers.sort((a, b) => a.priority - b.priority);
    }
  }

  next(): Choice<Item> | null {
    const flow = nextFlow(this.#shares, this.#queues, (queue, lane) => this.#tiersOf({ queue, lane }).length > 0);
    const tier = flow && this.#tiersOf(flow)[0];
    const item = tier?.lines[0]?.[0];
    if (!flow || !tier || item === undefined) return null;
    const isAlone = tier.lines.length === 1 && tier.lines[0]?.length === 1;
    return { ...flow, item, isOnly: isAlone && this.flows().length === 1 };
  }

  /** The chosen item got so many places. */
  served(flow: Flow, places = 1): void {
    const queue = this.#queues.find((one) => one.queue === flow.queue);
    if (queue) this.#shares = charged(this.#shares, queue, flow, places);
    const lines = this.#tiersOf(flow)[0]?.lines;
    const line = lines?.shift();
    const item = line?.shift();
    if (!lines || !line || item === undefined) return;
    line.push(item);
    lines.push(line);
  }

  /** The chosen item gets no place any more. */
  drop(flow: Flow): void {
    const tiers = this.#tiersOf(flow);
    const lines = tiers[0]?.lines;
    lines?.[0]?.shift();
    if (lines?.[0]?.length === 0) lines.shift();
    if (lines?.length === 0) tiers.shift();
  }

  /** Those that can still give a job. */
  flows(): Flow[] {
    return this.#queues.flatMap(({ queue }) =>
      [...(this.#tiers.get(queue) ?? [])].flatMap(([lane, tiers]) => (tiers.length > 0 ? [{ queue, lane }] : [])),
    );
  }

  #tiersOf({ queue, lane }: Flow): Tier<Item>[] {
    return this.#tiers.get(queue)?.get(lane) ?? [];
  }
}
