import { systemClock } from '../clock.ts';
import type { Mulligan } from '../mulligan.ts';
import type { EventMap, EventName, FinishedEvent, RunEvent } from '../observe/events.ts';
import type { Output, Style } from './output.ts';
import { printable } from './printable.ts';
import { iso, span } from './time.ts';

type Told = Exclude<EventName, 'enqueued'>;

/** One line per start and finish of a run; with `--json`, one object per line. */
export function reportRuns(mulligan: Mulligan, output: Output): void {
  for (const name of Object.keys(tellers) as Told[]) {
    mulligan.on(name, (event) => {
      const at = systemClock.now();
      output.answer({ event: name, at, ...jsonOf(event) }, () => [line(name, event, at, output)]);
    });
  }
}

const styles: Readonly<Record<Told, Style>> = {
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

/** What is told beyond the name, the id and the run. */
const tellers: { readonly [Name in Told]: (event: EventMap[Name]) => string } = {
  started: ({ attempt, waitedMs }) => `attempt ${attempt}, waited ${span(waitedMs)}`,
  completed: ({ durationMs }) => `in ${span(durationMs)}`,
  retrying: (event) => `${ended(event)}; again in ${span(event.delayMs)} (${event.decision.rule})`,
  dead: (event) => `${ended(event)}; ${event.reason} (${event.decision.rule})`,
  cancelled: ({ durationMs }) => `after ${span(durationMs)}`,
  released: (event) => `${event.outcome}, not counted; again in ${span(event.delayMs)} (${event.decision.rule})`,
  rescued: () => 'its worker went silent',
  'lease-lost': () => 'another worker has it now',
  'settle-failed': ({ error }) => `its outcome could not be recorded: ${textOf(error)}`,
};

function ended({ outcome, error, durationMs }: FinishedEvent): string {
  return `${outcome} after ${span(durationMs)}${error === null ? '' : ` with ${error.name}: ${error.message}`}`;
}

function line(name: Told, event: RunEvent, at: number, output: Output): string {
  const word = output.paint(styles[name], name.padEnd(10));
  const told = printable(`${event.name} ${event.id} run ${event.run}: ${tellers[name](event as never)}`);
  return `${output.paint('dim', iso(at))} ${word} ${told}`;
}

/** Errors are not JSON; an event that carries one says what it said. */
function jsonOf(event: RunEvent | (RunEvent & { error: unknown })): object {
  return 'error' in event && event.error instanceof Error ? { ...event, error: textOf(event.error) } : event;
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
