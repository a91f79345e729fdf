import { KEY_LIFE } from '../../codes.ts';

export { LANE, OUTCOME } from '../../codes.ts';
export const STARTED: number = KEY_LIFE.started;
export const PRUNED: number = KEY_LIFE.pruned;

/*
 * The plans are known, so the planner is not asked: a queue's tables are empty at one moment and full at the next,
 * and a plan made for the one is a disaster in the other. Rows are found by index, in the order they are given.
 */
export const BY_INDEX: string = `
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan SET jit = off`;
export const HERE: string = 'SET search_path FROM CURRENT';

/** What we say when the tables are not those whose numbers the caller remembers: they were restored, or made anew. */
export const REPLACED = 'MU001';
export const SAY_REPLACED: string = `RAISE EXCEPTION 'these are not the tables that the caller knows' USING ERRCODE = '${REPLACED}';`;

/** So many jobs can be numbered in one call. */
export const LARGEST_CALL = 65_536;

/**
 * `id = other`, in the one form that the planner can only read as: for each `other`, look up `id`. Given an equation it
 * may turn the join around and read all of the table instead, dead rows included, when its statistics say that hardly
 * a row is left in it: which is true whenever a queue has just run empty.
 */
export const lookUp = (id: string, other: string): string => `${id} = ANY (ARRAY[${other}])`;

/** The row that a run holds: `l` is the job, `g` is what was given. */
export const FENCE: string = `${lookUp('l.id', 'g.id')} AND l.runs = g.run AND l.worker = g.worker`;
