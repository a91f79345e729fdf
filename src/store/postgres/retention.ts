import { states } from '../../job.ts';
import { STATE } from '../codes.ts';
import type { RetentionRule, RetentionWrite } from '../store.ts';
import type { Session } from './session.ts';

const READ = 'SELECT name, state, is_code, kept_ms FROM @.retention';

type RuleRow = [name: string, state: number, isCode: boolean, keptMs: number | null];

export async function retention({ db }: Session): Promise<RetentionRule[]> {
  const rows = await db.read<RuleRow>(READ, []);
  return rows.map(([name, state, isCode, keptMs]) => ({
    name: name === '' ? null : name,
    state: states[state] as RetentionRule['state'],
    source: isCode ? 'code' : 'set',
    keptMs,
  }));
}

export async function writeRetention({ db }: Session, writes: readonly RetentionWrite[]): Promise<void> {
  for (const { name, state, source, keptMs } of writes) {
    const rule = [name ?? '', STATE[state], source === 'code'];
    await db.query('SELECT @.write_retention($1, $2::smallint, $3, $4, $5)', [
      ...rule,
      keptMs ?? null,
      keptMs === undefined,
    ]);
  }
}
