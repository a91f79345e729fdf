import type { NewJob, Schedule, ScheduleWrite, ScheduleWritten } from '../../src/store/store.ts';
import type { ExecutedEvent, History } from '../history.ts';
import { START } from '../scheduler.ts';
import type { Violation } from './checker.ts';

/*
 * Guarantee 13: each tick of a schedule gets exactly one job.
 *
 * Each write names the version that it came from, so the writes of a schedule form a chain, whatever the order of their
 * answers. From link to link the ticks that were passed must be those that got a job. The simulated schedules fire every
 * tick, however late. That a job which was stored stays and is stored once is checked with all the others.
 */

const GUARANTEE = 13;

interface Link {
  readonly at: number;
  readonly write: ScheduleWrite;
}

export function checkSchedules(history: History): Violation[] {
  const violations: Violation[] = [];
  const links = new Map<string, Link[]>();
  for (const event of history.events) {
    if (event.kind !== 'executed' || event.verb !== 'writeSchedule') continue;
    const write = event.args[0] as ScheduleWrite;
    if (!(event.value as ScheduleWritten).written) continue;
    const known = links.get(write.name) ?? [];
    links.set(write.name, known);
    // Sent again, it changes nothing.
    if (!known.some(({ write: other }) => other.to?.version === write.to?.version)) known.push({ at: event.at, write });
  }
  for (const chain of links.values()) checkChain(chain, violations);
  return violations;
}

function checkChain(links: readonly Link[], violations: Violation[]): void {
  const bySource = Map.groupBy(links, ({ write }) => write.from);
  const ids = new Set<string>();
  let before: Schedule | null = null;
  for (;;) {
    const next: Link[] = bySource.get(before?.version ?? null) ?? [];
    if (next.length === 0) return;
    const { at, write } = next[0] as Link;
    const report = (text: string): void =>
      void violations.push({ guarantee: GUARANTEE, at, text: `${write.name}: ${text}` });
    if (next.length > 1) report(`${next.length} writes were accepted from version ${write.from}`);
    // What an operator triggered has no time of its own, and is no tick.
    const ticks = write.jobs.filter(({ dueAt }) => dueAt !== null);
    if (before !== null && write.to !== null) checkLink(before, write.to, ticks, START + at, report);
    for (const { id, dueAt } of ticks) {
      if (ids.has(id)) report(`the tick ${dueAt} got the job of another tick`);
      ids.add(id);
    }
    before = write.to;
    if (before === null) return;
  }
}

function checkLink(
  before: Schedule,
  after: Schedule,
  jobs: readonly NewJob[],
  now: number,
  report: (text: string) => void,
): void {
  const fired = jobs.map(({ dueAt }) => dueAt as number);
  const early = fired.find((tick) => tick > now);
  if (early !== undefined) report(`the tick ${early} was fired at ${now}`);
  const again = fired.find((tick) => tick <= (before.lastAt ?? 0));
  if (again !== undefined) report(`the tick ${again} was fired again, after ${before.lastAt}`);
  if (before.nextAt === null || after.nextAt === null) {
    if (fired.length > 0) report(`the ticks ${fired} were fired while it was paused`);
    return;
  }
  const passed = ticksBetween(before, after.nextAt);
  if (passed.join() !== fired.join()) report(`the ticks [${passed}] were passed, but [${fired}] got a job`);
}

function ticksBetween({ nextAt, timing }: Schedule, to: number): number[] {
  const everyMs = timing.kind === 'every' ? timing.everyMs : Number.NaN;
  const ticks: number[] = [];
  for (let tick = nextAt as number; tick < to; tick += everyMs) ticks.push(tick);
  return ticks;
}

/** The jobs of a tick are stored like any others. */
export function asEnqueue(event: ExecutedEvent): ExecutedEvent {
  if (event.verb !== 'writeSchedule') return event;
  const { written, jobs } = event.value as ScheduleWritten;
  const given = (event.args[0] as ScheduleWrite).jobs;
  return { ...event, verb: 'enqueue', args: [written ? given : []], value: jobs };
}
