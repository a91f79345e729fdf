import { formatDuration } from '../duration.ts';
import { printableJson } from '../printable.ts';
import type { Timing } from '../schedule/timing.ts';
import type { ScheduleDetails, ScheduleInfo } from '../schedules.ts';
import type { Output } from './output.ts';
import { type Cell, factLines, tableLines } from './table.ts';
import { fromNow, iso, pointInTime } from './time.ts';

const LONGEST_INPUT = 2_000;

export function scheduleListLines(schedules: readonly ScheduleInfo[], now: number, output: Output): string[] {
  return tableLines(
    [
      { title: 'name', gives: 'shortened', max: 60 },
      { title: 'job', gives: 'shortened', max: 60 },
      { title: 'when', gives: 'shortened' },
      { title: 'next' },
      { title: 'last' },
      { title: 'from' },
    ],
    schedules.map((one) => [
      one.name,
      one.job,
      timingText(one.timing),
      nextCell(one, now),
      lastText(one, now),
      one.source,
    ]),
    output,
  );
}

/** `0 3 * * *, Europe/Berlin`, `every 5m`, `once`. */
export function timingText(timing: Timing): string {
  switch (timing.kind) {
    case 'cron':
      return `${timing.cron}, ${timing.timezone}`;
    case 'every':
      return `every ${formatDuration(timing.everyMs)}${timing.anchor === 0 ? '' : ` from ${iso(timing.anchor)}`}`;
    case 'at':
      return `once, at ${iso(timing.at)}`;
  }
}

function nextCell({ paused, nextAt }: ScheduleInfo, now: number): Cell {
  if (paused) return { text: 'paused', style: 'yellow' };
  return nextAt === null ? 'none' : fromNow(nextAt, now);
}

function lastText({ lastAt }: ScheduleInfo, now: number): string {
  return lastAt === null ? '-' : fromNow(lastAt, now);
}

export function scheduleFacts({ schedule, nextTimes, lastJob, now }: ScheduleDetails, output: Output): string[] {
  const { name, job, queue, priority, input, timing, misfire, misfireLimit, overlap, paused, lastAt } = schedule;
  const limit = misfire === 'all' ? `, the last ${misfireLimit} at most` : '';
  const json = printableJson(input);
  return [
    ...factLines(
      [
        ['name', name],
        ['job', `${job}, queue ${queue}, priority ${priority}`],
        ['input', json.length > LONGEST_INPUT ? `${json.slice(0, LONGEST_INPUT).toWellFormed()}...` : json],
        ['when', timingText(timing)],
        ['missed ticks', `${misfire}${limit}`],
        ['overlap', overlap],
        [
          'state',
          paused ? 'paused: no tick is fired' : schedule.nextAt === null ? 'over: it has no next tick' : 'active',
        ],
        ['from', schedule.source],
        ['updated', pointInTime(schedule.updatedAt, now)],
        ['last tick', lastAt === null ? 'none yet' : pointInTime(lastAt, now)],
        ['last job', lastJob === null ? '-' : `${lastJob.id} (${lastJob.state})`],
      ],
      output,
    ),
    ...(nextTimes.length === 0 ? [] : ['', output.paint('dim', paused ? 'next ticks, once resumed' : 'next ticks')]),
    ...nextTimes.map((at) => tickLine(at, timing, now)),
  ];
}

/** In the time zone of the pattern, too: that is how its author thinks of it. */
function tickLine(at: number, timing: Timing, now: number): string {
  const local = timing.kind === 'cron' && timing.timezone !== 'UTC' ? `  ${wallTime(at, timing.timezone)}` : '';
  return `${pointInTime(at, now)}${local}`;
}

function wallTime(at: number, timezone: string): string {
  const format = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' },
  });
  return `${format.format(at)} ${timezone}`;
}
