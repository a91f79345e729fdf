import type { Job } from '../job.ts';
import { limitsText, settingsFor } from '../limit/limit.ts';
import type { LimitInfo, LimitKeyInfo, Store, StoredGate } from '../store/store.ts';

/*
 * How many jobs of a queue more workers could start now. Jobs behind a gate that lets nothing through do not count, or an
 * outage would start workers that have nothing to do; nor do jobs whose limits are in use.
 *
 * No verb counts the jobs of one queue behind one gate or limit. So two lower bounds are taken, and the larger one is the
 * answer: all due jobs less all that wait behind shut gates and limits, whichever queue they are in; and those among the
 * newest LOOKED_AT due jobs that are behind neither, or whose keys have room. Either is exact where the other is not: many
 * jobs behind a gate of this queue, or of another.
 */
const LOOKED_AT = 1_000;
const MOST_GATES = 1_000;
const MOST_LIMITS = 1_000;

export interface Scale {
  readonly queue: string;
  readonly due: number;
  readonly admissible: number;
  readonly paused: boolean;
}

export async function scaleOf(store: Store, queue: string, now: number): Promise<Scale> {
  const [due, queues, gates, limits] = await Promise.all([
    store.count({ queue, state: 'ready' }),
    store.queues(),
    store.gates({ kind: 'resource', limit: MOST_GATES }),
    store.limits({ limit: MOST_LIMITS }),
  ]);
  const paused = queues.some((one) => one.queue === queue && one.paused);
  const shut = new Map(gates.filter(isShut).map(({ gate, waiting }) => [gate.name, waiting ?? 0]));
  const figures = { queue, due: due.count, paused };
  if (paused || due.count === 0) return { ...figures, admissible: 0 };
  const limited = limits.reduce((sum, { waiting }) => sum + waiting, 0);
  if (shut.size === 0 && limited === 0) return { ...figures, admissible: due.count };
  const newest = await store.list({ queue, state: 'ready', limit: LOOKED_AT });
  const admitted = newest.filter(({ resource }) => resource === null || !shut.has(resource));
  const behind = [...shut.values()].reduce((sum, waiting) => sum + waiting, limited);
  return { ...figures, admissible: Math.max(await countWithRoom(store, admitted, limits, now), due.count - behind) };
}

/** How many of these jobs their limits let start. */
async function countWithRoom(
  store: Store,
  jobs: readonly Job[],
  limits: readonly LimitInfo[],
  now: number,
): Promise<number> {
  const rooms = new Map<string, number>();
  for (const limit of limits) {
    const { total } = settingsFor(limit, undefined);
    if (total !== null) rooms.set(limit.name, total - limit.running);
    const keys = jobs.flatMap((job) => job.limits.filter((one) => one.limit === limit.name).map(({ key }) => key));
    if (keys.length === 0) continue;
    const used = await store.limitKeys(limit.name, { keys: [...new Set(keys)], limit: LOOKED_AT });
    for (const key of used) rooms.set(limitsText([key]), roomIn(key, now));
  }
  return jobs.filter(({ limits: own }) => {
    const texts = own.flatMap((one) => [one.limit, limitsText([one])]).filter((text) => rooms.has(text));
    const hasRoom = texts.every((text) => (rooms.get(text) as number) > 0);
    if (hasRoom) for (const text of texts) rooms.set(text, (rooms.get(text) as number) - 1);
    return hasRoom;
  }).length;
}

function roomIn({ settings: { concurrency, rate }, running, startsAt }: LimitKeyInfo, now: number): number {
  const places = concurrency === null ? Number.POSITIVE_INFINITY : concurrency - running;
  if (rate === null || startsAt === null) return places;
  return startsAt > now ? 0 : Math.min(places, rate.burst);
}

/** An open gate lets a probe through now and then; that needs no further worker. */
function isShut({ state: { pin, phase, heldUntil }, now }: StoredGate): boolean {
  return pin === 'open' || (pin === null && (phase === 'open' || heldUntil > now));
}
