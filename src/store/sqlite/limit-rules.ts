import { type LimitKey, type LimitRules, type LimitSettings, settingsFor } from '../../limit/limit.ts';
import type { Session } from './session.ts';

/* What limits allow, and the rates of keys. */

const READ = 'SELECT code, operator FROM limit_rules WHERE name = ? AND is_key = ? AND key = ?';
const READ_RATE = 'SELECT next_start_at AS at FROM limit_rates WHERE name = ? AND key = ?';
const WRITE_RATE = 'INSERT OR REPLACE INTO limit_rates (name, key, next_start_at) VALUES (?, ?, ?)';

const noRules: LimitRules = { code: null, set: null };

/** `key`: null for the rules of the limit itself. */
export function readRules(session: Session, limit: string, key: string | null): LimitRules {
  const row = session.sql(READ).get(limit, key === null ? 0 : 1, key ?? '');
  return row ? toRules(row as unknown as RuleRow) : noRules;
}

export interface RuleRow {
  readonly code: string | null;
  readonly operator: string | null;
}

export function toRules({ code, operator }: RuleRow): LimitRules {
  return { code: code && JSON.parse(code), set: operator && JSON.parse(operator) };
}

export function readSettings(session: Session, { limit, key }: LimitKey): LimitSettings {
  return settingsFor(readRules(session, limit, null), readRules(session, limit, key));
}

/** What a key would like to start next by its rate; see ../../limit/rate.ts. */
export function readNextStart(session: Session, { limit, key }: LimitKey): number {
  return (session.sql(READ_RATE).get(limit, key) as { at: number } | undefined)?.at ?? 0;
}

export function writeNextStart(session: Session, { limit, key }: LimitKey, at: number): void {
  session.sql(WRITE_RATE).run(limit, key, at);
}
