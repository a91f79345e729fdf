import { KEY_LIFE } from '../codes.ts';
import type { Session } from './session.ts';

/*
 * A job holds its key in `held_key`, which is unique per name, for as long as its key life says. One with the key life `window`
 * has a row in `key_windows` instead: it holds its key until a time, also when the job is gone.
 */

/** SQL: what is left of the held key when a run of the job starts. */
export const KEY_AFTER_START: string = `CASE key_life WHEN ${KEY_LIFE.started} THEN NULL ELSE held_key END`;
/** SQL: and when the job has ended. */
export const KEY_AFTER_END: string = `CASE key_life WHEN ${KEY_LIFE.pruned} THEN held_key END`;
/** SQL: what a job holds that is brought back. */
export const KEY_AFTER_REDRIVE: string = `
  CASE WHEN key_life IN (${KEY_LIFE.started}, ${KEY_LIFE.window}) THEN NULL ELSE key END`;

const HOLDER = 'SELECT id FROM jobs WHERE name = ? AND held_key = ?';
const WINDOW = 'SELECT job AS id FROM key_windows WHERE name = ? AND key = ? AND until > ?';
const OPEN_WINDOW = 'INSERT OR REPLACE INTO key_windows (name, key, job, until) VALUES (?, ?, ?, ?)';
const PASSED_WINDOWS = `
  DELETE FROM key_windows WHERE (name, key) IN (SELECT name, key FROM key_windows WHERE until <= ? ORDER BY until LIMIT ?)`;

interface Holder {
  readonly id: string;
}

/** The id of the job that holds this key; null when none does. */
export function holderOf(session: Session, name: number, key: string): string | null {
  const holder = session.sql(HOLDER).get(name, key) as Holder | undefined;
  return holder?.id ?? windowHolderOf(session, name, key);
}

/** The id of the job that holds this key until a time; null when none does. */
export function windowHolderOf(session: Session, name: number, key: string): string | null {
  return (session.sql(WINDOW).get(name, key, session.now) as Holder | undefined)?.id ?? null;
}

export function openWindow(session: Session, name: number, key: string, job: string, windowMs: number): void {
  session.sql(OPEN_WINDOW).run(name, key, job, session.now + windowMs);
}

/** True when there may be more of them. */
export function forgetWindows(session: Session, limit: number): boolean {
  return session.sql(PASSED_WINDOWS).run(session.now, limit).changes === limit;
}

export interface Keyed {
  readonly name: number;
  readonly key: string | null;
  readonly key_life: number;
}

/** A key that lasts until the first start, or for a time, is given up for good; a redrive does not ask for it again. */
export function wantsKeyAgain<Row extends Keyed>(row: Row): row is Row & { readonly key: string } {
  return row.key !== null && row.key_life !== KEY_LIFE.started && row.key_life !== KEY_LIFE.window;
}

/** One text per name and key. */
export function keySlot({ name, key }: Keyed): string {
  return `${name} ${key}`;
}
