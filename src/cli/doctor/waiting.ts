import { span } from '../time.ts';
import { type Check, fromTrouble } from './check.ts';
import type { WaitingJobs } from './served.ts';
import { added, count, some } from './words.ts';

/** Workers look for due jobs every second. */
const LONG_WAIT_MS = 60_000;
/** So many aside, or behind gates and limits, are worth a look, however short they wait. */
const MANY = 50;

const ASIDE_ADVICE =
  'check that a live worker knows their names and versions and accepts their payloads, or deploy one';

type Part = Omit<Check, 'name'>;

/** Due jobs: those that any worker may take, by the oldest of each queue, and those that something holds back, by what it is. */
export function waiting(now: number, jobs: readonly WaitingJobs[], paused: ReadonlySet<string>): Check {
  const due = jobs.filter((group) => group.due > 0);
  const inPaused = due.filter(({ queue }) => paused.has(queue));
  const others = due.filter(({ queue }) => !paused.has(queue));
  // Before gates and limits: these may let it start, and still no worker would take it.
  const aside = others.filter(({ isAside }) => isAside);
  const readable = others.filter(({ isAside }) => !isAside);
  const gated = readable.filter(({ gate }) => gate !== null);
  const limited = readable.filter(({ gate, limits }) => gate === null && limits.length > 0);
  const free = readable.filter(({ gate, limits }) => gate === null && limits.length === 0);
  return fromTrouble('waiting', 'no job is due', [
    ...oldest(now, free),
    ...heldPart(inPaused, 'in paused queues', ({ queue }) => [queue]),
    ...warned(now, aside, 'set aside', ({ name }) => [name], ASIDE_ADVICE),
    ...warned(now, gated, 'behind gates', ({ gate }) => [gate ?? ''], 'mulligan gates list says what gates wait for'),
    ...warned(now, limited, 'behind limits', ({ limits }) => limits, 'mulligan limits show NAME says what is full'),
  ]);
}

/** The oldest due job of each queue. */
function oldest(now: number, jobs: readonly WaitingJobs[]): Part[] {
  const queues = [...Map.groupBy(jobs, ({ queue }) => queue).values()]
    .map((groups) => groups.reduce((first, group) => (group.oldestDueAt < first.oldestDueAt ? group : first)))
    .sort((a, b) => a.oldestDueAt - b.oldestDueAt);
  const [first] = queues;
  if (first === undefined) return [];
  const text = (group: WaitingJobs): string => `${span(now - group.oldestDueAt)} in ${group.queue} (${group.name})`;
  const late = queues.filter(({ oldestDueAt }) => now - oldestDueAt >= LONG_WAIT_MS);
  if (late.length === 0) {
    return [{ health: 'ok', found: `the oldest due job has waited for ${text(first)}`, advice: null }];
  }
  return [
    {
      health: 'warn',
      found: `the oldest due jobs have waited for ${some(late.map(text))}`,
      advice: 'check that workers run and serve these queues (mulligan workers list), or add workers',
    },
  ];
}

function heldPart(
  jobs: readonly WaitingJobs[],
  where: string,
  holders: (group: WaitingJobs) => readonly string[],
): Part[] {
  if (jobs.length === 0) return [];
  const total = jobs.reduce((sum, { due }) => sum + due, 0);
  const by = jobs.flatMap((group) => holders(group).map((text) => ({ text, amount: group.due })));
  return [{ health: 'ok', found: `${count(total, 'due job')} ${where}: ${some(added(by))}`, advice: null }];
}

/** A pause is warned of by itself; what waits aside or behind gates and limits is normal, unless it is much or waits for long. */
function warned(
  now: number,
  jobs: readonly WaitingJobs[],
  where: string,
  holders: (group: WaitingJobs) => readonly string[],
  advice: string,
): Part[] {
  const isMuch = jobs.reduce((sum, { due }) => sum + due, 0) >= MANY;
  const isLong = jobs.some(({ oldestDueAt }) => now - oldestDueAt >= LONG_WAIT_MS);
  const part = heldPart(jobs, where, holders);
  return isMuch || isLong ? part.map(({ found }) => ({ health: 'warn', found, advice })) : part;
}
