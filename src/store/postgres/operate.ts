import type { CancelAnswer, HoldTarget } from '../store.ts';
import { plain } from './connection/arrays.ts';
import type { Session } from './session.ts';
import { FOR_GOOD } from './sql/shared.ts';
import { isUuid } from './uuid.ts';

export async function cancel(session: Session, ids: readonly string[]): Promise<CancelAnswer[]> {
  const known = [...new Set(ids.filter(isUuid))].sort();
  const rows = await session.db.query<[id: string, result: CancelAnswer['result']]>(
    'SELECT id, @.cancel(id) FROM unnest($1::uuid[]) AS g (id)',
    [plain(known)],
  );
  const results = new Map(rows);
  const seen = new Set<string>();
  return ids.map((id) => {
    const result = results.get(id) ?? 'not-found';
    // Named twice, it had already ended by the second time.
    const again = seen.has(id) && result === 'cancelled';
    seen.add(id);
    return { id, result: again ? 'already-ended' : result };
  });
}

export async function hold(session: Session, target: HoldTarget, until: number | null): Promise<void> {
  await changeHold(session, target, until ?? FOR_GOOD);
}

/** False when there was no such hold. */
export function release(session: Session, target: HoldTarget): Promise<boolean> {
  return changeHold(session, target, null);
}

async function changeHold(session: Session, target: HoldTarget, until: number | null): Promise<boolean> {
  const [scope, name] = 'queue' in target ? ['queue', target.queue] : ['resource', target.resource];
  const [row] = await session.db.query<[wasHeld: boolean]>('SELECT @.hold($1, $2, $3)', [scope, name, until]);
  session.candidates.forget();
  return (row as [boolean])[0];
}
