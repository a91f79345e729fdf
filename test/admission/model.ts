import { inOrder, type TakenJob } from '../../src/admission/in-order.ts';
import type {
  GateReading,
  Offer,
  OfferedPartition,
  Places,
  PlannedQueue,
  PlanRequest,
  RunningRetries,
  UseReading,
} from '../../src/admission/offer.ts';
import { type Plan, planClaim } from '../../src/admission/plan.ts';
import { type Shares, settleShares } from '../../src/admission/shares.ts';
import type { GateState } from '../../src/gate/index.ts';
import type { Lane } from '../../src/lane.ts';
import { type KeyUse, type LimitSettings, unlimited } from '../../src/limit/limit.ts';

/** A store in a few lines for tests of plans: partitions with counts, which are offered, and taken as a plan says. */

export const T0 = 1_700_000_000_000;
export const steady = (): number => 0.5;

export interface Work {
  readonly queue?: string;
  readonly lane?: Lane;
  readonly priority?: number;
  /** Partitions with the same line take one turn together; by default each has a line of its own. */
  readonly line?: number;
  readonly due: number;
  readonly isCounted?: boolean;
  readonly gate?: string;
  readonly keys?: readonly { readonly limit: string; readonly key?: string }[];
  readonly opensAt?: number;
  readonly label?: string;
}

export const idle: KeyUse = { running: 0, waiting: 0, suspects: 0, total: 0, nextStartAt: 0 };

export function settings(changes: Partial<LimitSettings>): LimitSettings {
  return { ...unlimited, ...changes };
}

interface Part extends Required<Omit<Work, 'gate'>> {
  readonly id: number;
  readonly partition: number;
  readonly gate: string | null;
  left: number;
}

export interface Start extends TakenJob {
  readonly label: string;
}

export class Model {
  now: number = T0;
  readonly parts: Part[];
  readonly queues: readonly PlannedQueue[];
  readonly limits: Record<string, LimitSettings>;
  readonly uses: Map<string, KeyUse> = new Map();
  readonly gates: Map<string, GateState> = new Map();
  running: ReadonlyMap<string, RunningRetries> | null = new Map();
  knows: ReadonlyMap<string, number> = new Map([['job', 1]]);
  shares: Shares = {};
  plan: Plan | null = null;
  readonly #turns: Map<number, number> = new Map();
  #turn = 0;

  constructor(
    work: readonly Work[],
    queues: readonly Partial<PlannedQueue>[] = [{}],
    limits: Record<string, LimitSettings> = {},
  ) {
    const defaults = { queue: 'a', weight: 1, retryShare: 0.2, maxRetriesInFlight: null };
    this.queues = queues.map((queue) => ({ ...defaults, ...queue }));
    this.limits = limits;
    this.parts = work.map((one, id) => {
      const { queue = 'a', lane = 'fresh', priority = 5, due, line = id, isCounted = true, gate = null } = one;
      const { keys = [], opensAt = 0, label = `${id}` } = one;
      return { id, partition: id, queue, lane, priority, line, due, isCounted, gate, keys, opensAt, label, left: due };
    });
  }

  offer(): Offer {
    const uses: UseReading[] = [];
    const indexOf = ({ limit, key = '' }: { limit: string; key?: string }): number => {
      const known = uses.findIndex((one) => one.limit === limit && one.key === key);
      if (known >= 0) return known;
      const total = [...this.uses].filter(([name]) => name.startsWith(`${limit}/`));
      const use = this.uses.get(`${limit}/${key}`) ?? idle;
      const all = total.reduce((sum, [, { running }]) => sum + running, 0);
      const bounds = this.limits[limit] ?? unlimited;
      uses.push({ limit, key, settings: bounds, settingsVersion: 1, use: { ...use, total: all } });
      return uses.length - 1;
    };
    const lines = new Map<number, Offer['lines'][number] & { partitions: OfferedPartition[] }>();
    for (const part of this.parts) {
      if (part.left === 0) continue;
      const { queue, lane, priority, line: id } = part;
      const line = lines.get(id) ?? { id, queue, lane, priority, partitions: [] };
      lines.set(id, line);
      const { id: partition, gate, keys, left, isCounted, opensAt } = part;
      line.partitions.push({
        id: partition,
        gate: gate !== null && this.gates.has(gate) ? gate : null,
        uses: keys.map(indexOf),
        ...(isCounted && { due: left }),
        opensAt,
        candidates: [{ id: `${partition}-${left}`, name: 'job', version: 1 }],
      });
    }
    const gates = new Map(
      [...this.gates].map(([name, state]): [string, GateReading] => [name, { state, version: 1, parent: null }]),
    );
    return {
      now: this.now,
      lines: [...lines.values()],
      gates,
      parents: new Map(),
      uses,
      running: this.running,
      nextAt: null,
    };
  }

  request(places: Partial<Places> = {}, changes: Partial<PlanRequest> = {}): PlanRequest {
    const { queues, knows } = this;
    return {
      places: { free: 0, ahead: 0, hot: 0, ...places },
      queues,
      worker: 1,
      knows,
      isTrial: false,
      ageMs: 0,
      ...changes,
    };
  }

  readonly turnOf = (line: number): number => this.#turns.get(line) ?? 0;

  planned(places: Partial<Places>, changes: Partial<PlanRequest> = {}): Plan {
    return planClaim(this.offer(), this.request(places, changes), this.shares, this.turnOf, steady);
  }

  /** Plans, takes and settles; answers the jobs in the order in which they start. */
  claim(places: Partial<Places>, changes: Partial<PlanRequest> = {}): Start[] {
    const plan = this.planned(places, changes);
    this.plan = plan;
    const taken: Start[] = [];
    let { limit } = plan;
    const take = (id: number, count: number): number => {
      const part = this.parts[id] as Part;
      const came = Math.min(count, part.left, limit);
      for (let job = 0; job < came; job++) taken.push(part);
      part.left -= came;
      limit -= came;
      for (const { limit: name, key = '' } of part.keys) {
        const use = this.uses.get(`${name}/${key}`) ?? idle;
        this.uses.set(`${name}/${key}`, { ...use, running: use.running + came });
      }
      return came;
    };
    const came = plan.wants.map(({ partition, want }) => take(partition, want));
    for (const index of plan.spill) {
      const { partition, most } = plan.wants[index] as Plan['wants'][number];
      take(partition, most - (came[index] as number));
    }
    for (const { name, state } of plan.guards.gates) if (state !== null) this.gates.set(name, state);
    const ordered = inOrder(taken, this.queues, this.shares, this.turnOf);
    const { free = 0, ahead = 0 } = places;
    const busy = plan.busy.filter(({ queue, lane }) =>
      this.parts.some((part) => part.queue === queue && part.lane === lane && part.left > 0),
    );
    this.shares = settleShares(this.shares, this.queues, free + ahead, taken, busy);
    for (const { line } of ordered) this.#turns.set(line, ++this.#turn);
    return ordered;
  }

  /** The labels of the jobs of so many claims, each of `places` jobs that end at once. */
  starts(claims: number, places = 1): string[] {
    return Array.from({ length: claims }, () => {
      const labels = this.claim({ free: places }).map(({ label }) => label);
      for (const [key, use] of this.uses) this.uses.set(key, { ...use, running: 0 });
      return labels;
    }).flat();
  }
}
