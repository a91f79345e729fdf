import { GATED_NAMED } from '../store.ts';
import type { Partition } from './partitions.ts';
import { heldUntil, NEVER } from './restrictions.ts';
import type { Session } from './session.ts';

/* What a claim tells of gated partitions, and what `claimGated` takes jobs from. See partitions.ts. */

const BY_TIME = `
  SELECT gated_at AS at, resource FROM partitions WHERE queue = ? AND gated_at IS NOT NULL ORDER BY gated_at`;
const NEXT = 'SELECT gated_at AS at FROM partitions WHERE queue = ? AND gated_at > ? ORDER BY gated_at LIMIT 1';
const OF_RESOURCE = `
  SELECT id, held_until AS heldUntil, gate_at AS gateAt, admissible_at AS admissibleAt, gated_at AS gatedAt,
    queue, lane, priority, turn
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

/** Costs a probe of an index when no partition of the queue is gated. */
export function gatedIn(session: Session, queue: number): GatedInQueue {
  const { now } = session;
  const found = new Map<number, GatedResource>();
  let nextAt = NEVER;
  for (const row of session.sql(BY_TIME).iterate(queue) as IterableIterator<unknown>) {
    const { at, resource } = row as GatedResource;
    if (at > now) nextAt = at;
    else if (!found.has(resource)) found.set(resource, { at, resource });
    if (at > now || found.size === GATED_NAMED) break;
  }
  if (found.size === 0 && nextAt === NEVER) return none;
  const held = heldUntil(session, 'queue', queue);
  if (held > now) return { now: [], nextAt: found.size > 0 ? held : Math.max(held, nextAt) };
  if (nextAt === NEVER) nextAt = (session.sql(NEXT).get(queue, now) as { at: number } | undefined)?.at ?? NEVER;
  return { now: [...found.values()], nextAt };
}

export interface GatedPartition extends Partition {
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  readonly turn: number;
}

/** By priority, then the least recently served first. None while the resource itself is held. */
export function gatedOf(session: Session, resource: number): GatedPartition[] {
  if (heldUntil(session, 'resource', resource) > session.now) return [];
  return session.sql(OF_RESOURCE).all(resource) as unknown as GatedPartition[];
}
