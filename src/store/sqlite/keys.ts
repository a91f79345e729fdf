import { KEY_LIFE } from '../codes.ts';
import type { Session } from './session.ts';

/* A job holds its key in `held_key`, which is unique per name, for as long as its key life says. */

/** SQL: what is left of the held key when a run of the job starts. */
export const KEY_AFTER_START: string = `CASE key_life WHEN ${KEY_LIFE.started} THEN NULL ELSE held_key END`;
/** SQL: and when the job has ended. */
export const KEY_AFTER_END: string = `CASE key_life WHEN ${KEY_LIFE.pruned} THEN held_key END`;
/** SQL: what a job holds that is brought back. */
export const KEY_AFTER_REDRIVE: string = `CASE key_life WHEN ${KEY_LIFE.started} THEN NULL ELSE key END`;

const HOLDER = 'SELECT id FROM jobs WHERE name = ? AND held_key = ?';

/** The id of the job that holds this key; null when none does. */
export function holderOf(session: Session, name: number, key: string): string | null {
  return (session.sql(HOLDER).get(name, key) as { id: string } | undefined)?.id ?? null;
}

export interface Keyed {
  readonly name: number;
  readonly key: string | null;
  readonly key_life: number;
}

/** A key that lasts until the first start was given up at that start; a redrive does not ask for it again. */
export function wantsKeyAgain<Row extends Keyed>(row: Row): row is Row & { readonly key: string } {
  return row.key !== null && row.key_life !== KEY_LIFE.started;
}

/** One text per name and key. */
export function keySlot({ name, key }: Keyed): string {
  return `${name} ${key}`;
}
