import { systemClock } from '../clock.ts';
import type { Mulligan } from '../mulligan.ts';
import type { EventMap, EventName, FinishedEvent, RunEvent } from '../observe/events.ts';
import { printable } from '../printable.ts';
import type { Output, Style } from './output.ts';
import { iso, span } from './time.ts';

/** A change of a gate has a log line; that a limit holds jobs back is as its owner wants it. */
type ReportedEvent = Exclude<EventName, 'enqueued' | 'gate' | 'limited'>;

/** One line per start and finish of a run; with `--json`, one object per line. */
export function reportRuns(mulligan: Mulligan, output: Output): void {
  for (const name of Object.keys(details) as ReportedEvent[]) {
    mulligan.on(name, (event) => {
      const at = systemClock.now();
      output.answer({ event: name, at, ...jsonOf(event) }, () => [line(name, event, at, output)]);
    });
  }
}

const styles: Readonly<Record<ReportedEvent, Style>> = {
  started: 'dim',
  completed: 'green',
  retrying: 'yellow',
  dead: 'red',
  cancelled: 'magenta',
  released: 'cyan',
  rescued: 'yellow',
  'lease-lost': 'red',
  'settle-failed': 'red',
};

/** What a line has beside the name, the id and the run. */
const details: { readonly [Name in ReportedEvent]: (event: EventMap[Name]) => string } = {
  started: ({ attempt, waitedMs }) => `attempt ${attempt}, waited ${span(waitedMs)}`,
  completed: ({ durationMs }) => `in ${span(durationMs)}`,
  retrying: (event) => `${ended(event)}; again in ${span(event.delayMs)} (${event.decision.rule})`,
  dead: (event) => `${ended(event)}; ${event.reason} (${event.decision.rule})`,
  cancelled: ({ durationMs }) => `after ${span(durationMs)}`,
  released: (event) => `${event.outcome}, not counted; again in ${span(event.delayMs)} (${event.decision.rule})`,
  rescued: () => 'its lease expired',
  'lease-lost': () => 'another worker has it now',
  'settle-failed': ({ error }) => `its outcome could not be recorded: ${textOf(error)}`,
};

function ended({ outcome, error, durationMs }: FinishedEvent): string {
  return `${outcome} after ${span(durationMs)}${error === null ? '' : ` with ${error.name}: ${error.message}`}`;
}

function line(name: ReportedEvent, event: RunEvent, at: number, output: Output): string {
  const word = output.paint(styles[name], name.padEnd(10));
  const text = printable(`${event.name} ${event.id} run ${event.run}: ${details[name](event as never)}`);
  return `${output.paint('dim', iso(at))} ${word} ${text}`;
}

/** Errors are not JSON, so an event that carries one has its text. */
function jsonOf(event: RunEvent | (RunEvent & { error: unknown })): object {
  return 'error' in event && event.error instanceof Error ? { ...event, error: textOf(event.error) } : event;
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
