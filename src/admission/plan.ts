import { lanes as allLanes, type Lane } from '../lane.ts';
import type { Random } from '../retry/jitter.ts';
import type { Offer, OfferedPartition, PlanRequest } from './offer.ts';
import type { CapGuard } from './retries.ts';
import { type GateGuard, type Refusal, Rooms, type UseGuard } from './rooms.ts';
import type { Flow, Shares } from './shares.ts';
import { Walk, type WalkedLine } from './walk.ts';

/*
 * Who may start now, over all kinds of jobs at once: planned here, and nowhere else.
 *
 * A store offers what is due; the walk (walk.ts) goes from one place to the next in the order that is owed, and each place
 * is asked for in all the rooms it counts in (rooms.ts). A plan is optimistic: the offer may be old and may not have counted.
 * The store takes what it is told, counts again under locks and takes fewer where less is left. So a plan also says who
 * gets the places that stay empty then.
 */

export interface Want {
  readonly partition: number;
  readonly line: number;
  /** So many jobs are planned; and so many may come when others have less than was planned. */
  readonly want: number;
  readonly most: number;
  /** Of `want`: those that hold something which others could use, and so must not wait long in the worker. */
  readonly hot: number;
}

export interface Probe {
  readonly gate: string;
  readonly job: string;
  readonly partition: number;
}

/** A partition that was found shut. `use`: something of this key must end first. */
export interface Park {
  readonly partition: number;
  readonly until: number | null;
  readonly use: number | null;
}

export interface Plan {
  /** In the order in which they were first chosen; then those that only get places which stay empty. */
  readonly wants: readonly Want[];
  /** Who gets places that stay empty, in this order: places in `wants`. */
  readonly spill: readonly number[];
  readonly probes: readonly Probe[];
  /** Jobs that the worker cannot run, and moves aside so that the gate gets a probe from those behind them. */
  readonly asides: readonly Probe[];
  readonly guards: {
    readonly caps: readonly CapGuard[];
    readonly uses: readonly UseGuard[];
    readonly gates: readonly GateGuard[];
  };
  readonly parks: readonly Park[];
  /** Flows that had work which may start when the places were used up; `settleShares` wants to know. */
  readonly busy: readonly Flow[];
  /** No more jobs than this in all. */
  readonly limit: number;
  /** When time alone lets a job start that was not planned; null when something else must happen first. */
  readonly nextAt: number | null;
}

interface Planned {
  readonly line: number;
  readonly partition: OfferedPartition;
  want: number;
  hot: number;
}

/** `turnOf`: when a line was last served, in any rising numbers. */
export function planClaim(
  offer: Offer,
  request: PlanRequest,
  shares: Shares,
  turnOf: (line: number) => number,
  random: Random,
): Plan {
  const now = offer.now + request.ageMs;
  const rooms = new Rooms(offer, request, now, random);
  const limit = rooms.places;
  const lines = linesInTurn(offer, now, turnOf);
  const lanes: Lane[] = request.isTrial ? ['suspect'] : allLanes.filter((lane) => lane !== 'suspect');
  const walk = new Walk(lines, request.queues, shares, lanes);
  const wanted = new Set<Planned>();
  const probes: Probe[] = [];
  const asides: Probe[] = [];
  const refusals: Refused[] = [];
  const owed: Flow[] = [];
  while (rooms.places > 0) {
    const choice = walk.next();
    if (choice === null) break;
    const { item } = choice;
    const grant = rooms.take(choice, item.partition, choice.isOnly ? rooms.places : 1);
    if ('by' in grant) {
      refusals.push({ ...grant, partition: item.partition.id });
      if (grant.by === 'places') owed.push({ queue: choice.queue, lane: choice.lane });
      walk.drop(choice);
      continue;
    }
    wanted.add(item);
    item.want += grant.places;
    if (grant.isHot) item.hot += grant.places;
    const { id: partition, gate } = item.partition;
    if (gate !== null && grant.probe !== null) probes.push({ gate, job: grant.probe, partition });
    if (gate !== null && grant.aside !== null) asides.push({ gate, job: grant.aside, partition });
    walk.served(choice, grant.places);
  }
  const busy = [...walk.flows(), ...owed];
  const spilling = spillOrder(walk, rooms, limit);
  const chosen = new Set([...wanted, ...spilling.map(({ item }) => item)]);
  const order = [...chosen];
  const mostOf = new Map(spilling.map(({ item, most }) => [item, most]));
  return {
    wants: order.map((item) => wantOf(item, mostOf.get(item) ?? item.want)),
    spill: spilling.map(({ item }) => order.indexOf(item)),
    probes,
    asides,
    guards: { caps: rooms.caps(), uses: rooms.uses(), gates: rooms.gates() },
    parks: refusals.flatMap(parkOf),
    busy,
    limit,
    nextAt: nextAt(offer, now, refusals),
  };
}

type Refused = Refusal & { readonly partition: number };

/** What is open now, the line that was served last at the end. */
function linesInTurn(offer: Offer, now: number, turnOf: (line: number) => number): WalkedLine<Planned>[] {
  return [...offer.lines]
    .sort((a, b) => turnOf(a.id) - turnOf(b.id) || a.id - b.id)
    .map((line) => {
      const open = line.partitions.filter(({ opensAt, due }) => opensAt <= now && due !== 0);
      return { ...line, items: open.map((partition) => ({ line: line.id, partition, want: 0, hot: 0 })) };
    });
}

/** The partitions that may give more than was planned, in the order in which they would have been asked. */
function spillOrder(walk: Walk<Planned>, rooms: Rooms, limit: number): { item: Planned; most: number }[] {
  const spilling: { item: Planned; most: number }[] = [];
  for (let choice = walk.next(); choice !== null; choice = walk.next()) {
    const { item } = choice;
    const most = Math.min(limit, item.want + rooms.spare(choice, item.partition));
    if (most > item.want) spilling.push({ item, most });
    walk.drop(choice);
  }
  return spilling;
}

function wantOf({ line, partition, want, hot }: Planned, most: number): Want {
  return { partition: partition.id, line, want, most, hot };
}

function parkOf(refused: Refused): Park[] {
  if (refused.by !== 'use' && refused.by !== 'gate') return [];
  const use = refused.by === 'use' ? refused.use : null;
  return [{ partition: refused.partition, until: refused.until, use }];
}

function nextAt(offer: Offer, now: number, refusals: readonly Refused[]): number | null {
  const opening = offer.lines.flatMap(({ partitions }) => partitions.map(({ opensAt }) => opensAt));
  const refused = refusals.map((refusal) => ('until' in refusal ? refusal.until : null));
  const times = [offer.nextAt, ...opening.filter((at) => at > now), ...refused].filter((at) => at !== null);
  return times.length === 0 ? null : Math.min(...times);
}
