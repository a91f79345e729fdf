import { KEY_LIFE, LANE, OUTCOME } from '../../codes.ts';
import { IDENTITY } from '../schema/identity.ts';

export { LANE, OUTCOME };
export const STARTED: number = KEY_LIFE.started;
export const WINDOW: number = KEY_LIFE.window;
/** The lives of a key that the end of the job does not end. */
export const OUTLIVING_KEYS: string = `${KEY_LIFE.pruned}, ${KEY_LIFE.window}`;

/*
 * The plans are known, so the planner is not asked: a queue's tables are empty at one moment and full at the next,
 * and a plan made for the one is a disaster in the other. Rows are found by index, in the order in which they are given.
 * A function that is only called by others has neither of these, because each setting costs time, and it has the caller's.
 */
export const BY_INDEX: string = `
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan SET jit = off`;
export const HERE: string = 'SET search_path FROM CURRENT';

/** SQLSTATE of a call by a process whose cached numbers are of other tables: these were restored or made in their place. */
export const REPLACED = 'MU001';
export const SAY_REPLACED: string = `RAISE EXCEPTION 'these are not the tables that the caller knows' USING ERRCODE = '${REPLACED}';`;
/** At the start of every function that takes numbers from a process's cache. */
export const IS_SAME: string = `EXISTS (SELECT 1 FROM schema_identity WHERE ${IDENTITY} = p_identity)`;
export const CHECK_IDENTITY: string = `
    IF NOT ${IS_SAME} THEN ${SAY_REPLACED} END IF;`;

/**
 * A partition whose key has no room is admissible from this on: later than any time, so that no search for what comes next
 * meets it. The time at which a claim reads it again at the latest is added to it.
 */
export const FULL: number = 2 ** 52;
/** A hold without an end. JavaScript can still count to it. */
export const FOR_GOOD: number = Number.MAX_SAFE_INTEGER;

/**
 * What makes a partition, as a digest: names may be longer than an index entry can be, and the planner finds one row by it,
 * where an index that begins with the queue might make it read all partitions of the queue.
 */
export const partitionDigest = (of: string): string =>
  `md5(length(${of}queue)::text || ' ' || ${of}queue || ' ' || ${of}lane::text || ' ' || ${of}priority::text || ' ' ||
    length(${of}resource)::text || ' ' || ${of}resource || ' ' || ${of}name)::uuid`;

/**
 * The line of a partition (../../turns.ts) as a number, which is a short index entry: of the job name in the lanes where names
 * wait apart, else of the resource without its key.
 */
export const lineDigest = (lane: string, resource: string, name: string): string => `
  CASE WHEN ${lane} IN (${LANE.retry}, ${LANE.redrive}) THEN hashtextextended(split_part(${name}, E'\\x01', 1), 0)
    WHEN ${resource} = '' THEN 0 ELSE hashtextextended(split_part(${resource}, '/', 1), 0) END`;

/** As much of a resource as an index entry can hold. */
export const resourceStart = (resource: string): string => `left(${resource}, 40)`;
/** The partitions p of a resource, found by index. */
export const isOfResource = (resource: string): string =>
  `(p.resource <> '' AND p.resource = ${resource} AND ${resourceStart('p.resource')} = ANY (ARRAY[${resourceStart(resource)}]))`;

/** The queue of the jobs in a partition, by the queue that the partition is under: see ../../aside.ts. */
export const queueOf = (queue: string): string => `split_part(${queue}, E'\\x01', 1)`;
/** Whether a partition is under a queue of its own: its jobs wait aside, behind limits, or both. */
export const isApart = (queue: string): string => `strpos(${queue}, E'\\x01') > 0`;
/** The names of the limits of a limited partition, by the queue that it is under, as JSON: see ../../limited-queue.ts. '' for others. */
export const limitNames = (queue: string): string => `split_part(${queue}, E'\\x01', 5)`;
export const isLimited = (queue: string): string => `${limitNames(queue)} <> ''`;
/** Its keys, in the order of the names, by the name of the partition. */
export const limitKeys = (name: string): string => `split_part(${name}, E'\\x01', 2)`;
/** The queue that limited partitions are under when their jobs do not wait aside. */
export const limitedUnder = (queue: string, names: string): string =>
  `${queue} || E'\\x01\\x010\\x01\\x01' || ${names}`;

/** The number of jobs that one call can number. */
export const LARGEST_CALL = 65_536;

/**
 * `id = other`, in the one form that the planner can only read as: for each `other`, look up `id`. Given an equation it
 * may turn the join around and read all of the table instead, dead rows included, when its statistics say that hardly
 * a row is left in it: which is true whenever a queue has just run empty.
 */
export const lookUp = (id: string, other: string): string => `${id} = ANY (ARRAY[${other}])`;

/** The row that a run holds: `l` is the job, `g` is what was given. */
export const FENCE: string = `${lookUp('l.id', 'g.id')} AND l.runs = g.run AND l.worker = g.worker`;
