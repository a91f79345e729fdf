import type { StatementSync } from 'node:sqlite';
import { accessFor, type GateAccess } from '../../gate/index.ts';
import { type Lane, lanes } from '../../job.ts';
import type { HoldTarget } from '../store.ts';
import type { InternedStrings } from './interned.ts';

/** Later than any time: held for good. */
export const NEVER: number = Number.MAX_SAFE_INTEGER;

/** What keeps the jobs of a partition from starting, beside their due time: a hold of their resource, and its gate. */
export interface Restriction {
  /** No ordinary claim takes them before. NEVER when the partition is gated. */
  readonly heldUntil: number;
  /** From when on `claimGated` may take them; null when the partition is not gated. */
  readonly gateAt: number | null;
}

const unrestricted: Restriction = { heldUntil: 0, gateAt: null };

const HELD_UNTIL = 'SELECT until FROM holds WHERE scope = ? AND name = ?';
const HOLD = 'INSERT OR REPLACE INTO holds (scope, name, until) VALUES (?, ?, ?)';
const RELEASE = 'DELETE FROM holds WHERE scope = ? AND name = ?';
const ACCESS = "SELECT access FROM gates WHERE kind = 'resource' AND name = ?";

/** What partitions need of the session that owns them. */
export interface PartitionSession {
  /** Store time of the transaction under way. */
  readonly now: number;
  readonly strings: InternedStrings;
  sql(text: string): StatementSync;
}

export function heldUntil(session: PartitionSession, scope: 'queue' | 'resource', name: number): number {
  return (session.sql(HELD_UNTIL).get(scope, name) as { until: number } | undefined)?.until ?? 0;
}

/** Stores a hold, or deletes it when `until` is null. Answers the number of the resource, or null for a queue. */
export function writeHold(session: PartitionSession, target: HoldTarget, until: number | null): number | null {
  const { strings } = session;
  const [scope, name] =
    'queue' in target
      ? (['queue', strings.intern(target.queue)] as const)
      : (['resource', strings.internResource(target.resource)] as const);
  if (until === null) session.sql(RELEASE).run(scope, name);
  else session.sql(HOLD).run(scope, name, until);
  return scope === 'resource' ? name : null;
}

/** The restriction of each lane of a resource, as its hold and its gate were last written. */
export function restrictionsOf(session: PartitionSession, resource: number): (lane: number) => Restriction {
  if (resource === 0) return () => unrestricted;
  const hold = heldUntil(session, 'resource', resource);
  const gate = session.sql(ACCESS).get(resource) as { access: string | null } | undefined;
  if (!gate?.access) return () => ({ heldUntil: hold, gateAt: null });
  const access = JSON.parse(gate.access) as GateAccess;
  return (lane) => {
    const { gated, at } = access[accessFor(lanes[lane] as Lane)];
    const from = Math.max(hold, at ?? NEVER);
    return gated ? { heldUntil: NEVER, gateAt: from } : { heldUntil: from, gateAt: null };
  };
}
