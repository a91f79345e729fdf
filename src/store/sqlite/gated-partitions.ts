import { GATED_NAMED } from '../store.ts';
import type { Partition } from './partitions.ts';
import { heldUntil, NEVER } from './restrictions.ts';
import type { Session } from './session.ts';

/* What a claim tells of gated partitions, and what `claimGated` takes jobs from. See partitions.ts. */

const FIRST =
  'SELECT gated_at AS at FROM partitions WHERE queue = ? AND gated_at IS NOT NULL ORDER BY gated_at LIMIT 1';
const NEXT = 'SELECT gated_at AS at FROM partitions WHERE queue = ? AND gated_at > ? ORDER BY gated_at LIMIT 1';
const WAITING = 'SELECT gated_at AS at, resource FROM partitions WHERE queue = ? AND gated_at <= ? ORDER BY gated_at';
const OF_RESOURCE = `
  SELECT id, held_until AS heldUntil, gate_at AS gateAt, admissible_at AS admissibleAt, gated_at AS gatedAt,
    limits, queue, lane, priority, line, turn
  FROM partitions WHERE resource = ? AND gated_at IS NOT NULL ORDER BY priority, turn, id`;

/** A resource of which a job may be asked for. */
interface GatedResource {
  readonly resource: number;
  readonly at: number;
}

export interface GatedInQueue {
  /** Those that may be asked now, the longest waiting first, as many as a claim names. */
  readonly now: readonly GatedResource[];
  /** When a further one may be asked; NEVER when none may by itself. */
  readonly nextAt: number;
}

const none: GatedInQueue = { now: [], nextAt: NEVER };

/** Costs one look-up in an index when no partition of the queue may be asked for now. `heldBy`: see `Partitions.tiers`. */
export function gatedIn(session: Session, queue: number, heldBy: number): GatedInQueue {
  const { now } = session;
  const first = session.sql(FIRST).get(queue) as { at: number } | undefined;
  if (first === undefined) return none;
  const held = heldUntil(session, 'queue', heldBy);
  if (held > now || first.at > now) return { now: [], nextAt: Math.max(held, first.at) };
  const next = session.sql(NEXT).get(queue, now) as { at: number } | undefined;
  return { now: longestWaiting(session, queue), nextAt: next?.at ?? NEVER };
}

function longestWaiting(session: Session, queue: number): GatedResource[] {
  const found = new Map<number, GatedResource>();
  // Row by row: a resource may have many partitions.
  for (const row of session.sql(WAITING).iterate(queue, session.now) as IterableIterator<unknown>) {
    const { at, resource } = row as GatedResource;
    if (!found.has(resource)) found.set(resource, { at, resource });
    if (found.size === GATED_NAMED) break;
  }
  return [...found.values()];
}

export interface GatedPartition extends Partition {
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  readonly line: number;
  readonly turn: number;
}

/** By priority, then the least recently served first. None while the resource itself is held. */
export function gatedOf(session: Session, resource: number): GatedPartition[] {
  if (heldUntil(session, 'resource', resource) > session.now) return [];
  return session.sql(OF_RESOURCE).all(resource) as unknown as GatedPartition[];
}
