import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';
import { LANE, STATE, WAITING } from '../../src/store/codes.ts';
import { SLOT } from '../../src/store/sqlite/limit-slots.ts';
import { NEVER } from '../../src/store/sqlite/restrictions.ts';

/** SQLite itself finds nothing wrong with the file, and its tables agree with one another. */
export function expectSoundFile(path: string): void {
  using db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  const found = db
    .prepare(`
      SELECT
        (SELECT count(*) FROM runs r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.seq = r.job)) AS orphans,
        (SELECT count(*) FROM errors e LEFT JOIN (SELECT error, count(*) AS uses FROM runs GROUP BY error) r
          ON r.error = e.id WHERE e.uses <> coalesce(r.uses, 0)) AS miscounted,
        (SELECT count(*) FROM (SELECT last_error FROM jobs UNION ALL SELECT error FROM runs) p
          WHERE last_error IS NOT NULL AND NOT EXISTS (SELECT 1 FROM errors e WHERE e.id = last_error)) AS dangling,
        (SELECT count(*) FROM jobs j WHERE (j.state IN (${WAITING})) <> (j.partition IS NOT NULL)) AS misplaced,
        (SELECT count(*) FROM jobs j WHERE j.partition IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM partitions p WHERE p.id = j.partition AND p.lane = j.lane AND p.priority = j.priority AND p.resource = j.resource
            AND CASE WHEN p.limits IS NULL
              THEN (p.queue = j.queue OR (j.queue, p.queue) IN (SELECT queue, aside FROM asides))
                AND p.name IN (0, j.name) AND (j.limits IS NULL OR j.lane = ${LANE.suspect})
              ELSE (j.queue, p.queue) IN (SELECT queue, limited FROM limited_queues)
                AND p.name = -p.id AND p.limited_name IN (0, j.name) AND p.limits = j.limits AND j.lane <> ${LANE.suspect}
              END)) AS lost,
        -- Each limit of a running job has a slot, and so has each of a suspect that waits; others keep their turn, or do not.
        (SELECT count(*) FROM jobs j, json_each(j.limits) l
          WHERE (j.state = ${STATE.running} OR (j.lane = ${LANE.suspect} AND j.runs > 0 AND j.partition IS NOT NULL))
            AND NOT EXISTS (SELECT 1 FROM limit_slots s
              WHERE s.name = l.value ->> 0 AND s.key = l.value ->> 1 AND s.seq = j.seq
                AND s.state = CASE WHEN j.state = ${STATE.running} THEN ${SLOT.running} ELSE ${SLOT.suspect} END)) AS uncounted,
        (SELECT count(*) FROM limit_slots s WHERE NOT EXISTS (
          SELECT 1 FROM jobs j, json_each(j.limits) l
          WHERE j.seq = s.seq AND s.name = l.value ->> 0 AND s.key = l.value ->> 1 AND s.state = CASE
            WHEN j.state = ${STATE.running} THEN ${SLOT.running}
            WHEN j.partition IS NULL THEN -1
            WHEN j.lane = ${LANE.suspect} THEN ${SLOT.suspect} ELSE ${SLOT.keepsTurn} END)) AS overcounted,
        -- For good, though no job of the key is there whose end would bring it back.
        (SELECT count(*) FROM partitions p WHERE p.waits_for IS NOT NULL AND p.resource = 0 AND p.held_until = ${NEVER}
          AND p.waits_for NOT IN (SELECT waits_for FROM limit_freed)
          AND NOT EXISTS (SELECT 1 FROM limit_slots s WHERE json_array(json_array(s.name, s.key)) = p.waits_for)) AS stuck,
        (SELECT count(*) FROM partitions p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.partition = p.id)) AS empty,
        (SELECT count(*) FROM (
          SELECT fingerprint, home_queue, name, sum(failing) AS failing, sum(dead) AS dead FROM (
            SELECT fingerprint, queue AS home_queue, name, failing, dead FROM error_counts
            UNION ALL
            SELECT fingerprint, home_queue, name, -(finished_at IS NULL), -(state = ${STATE.dead}) FROM jobs
            WHERE fingerprint IS NOT NULL)
          GROUP BY 1, 2, 3) WHERE failing <> 0 OR dead <> 0) AS misgrouped`)
    .get();
  expect({ ...found }).toEqual({
    orphans: 0,
    miscounted: 0,
    dangling: 0,
    misplaced: 0,
    lost: 0,
    uncounted: 0,
    overcounted: 0,
    stuck: 0,
    empty: 0,
    misgrouped: 0,
  });
}
