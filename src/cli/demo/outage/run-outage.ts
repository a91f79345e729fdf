import { join } from 'node:path';
import { systemClock } from '../../../clock.ts';
import { isTerminal } from '../../../job.ts';
import { Failure } from '../../failure.ts';
import { pause } from '../pause.ts';
import { Service } from './service.ts';
import { Side, type SideName } from './side.ts';
import { type OutageSummary, summarise } from './summary.ts';
import type { OutageView, Picture } from './view.ts';

/*
 * The course of the demo, for both sides at once:
 *
 *   jobs arrive, the service answers -> it is switched off, jobs still arrive -> it is back, no more jobs arrive
 *   -> every job has ended
 *
 * The numbers below are the script of the demo. They tune nothing in the queue.
 */

const JOBS_PER_SECOND = 60;
/** Long enough for the gate to learn what rate the service can serve; shorter before a short outage. */
const WARM_UP_MS = 18_000;
const WARM_UP_SHARE = 0.9;
const TICK_MS = 100;
const DRAW_EVERY_TICKS = 5;
/** An outage of 20 s is over within a minute; on a machine that needs so much longer, something is wrong. */
const LONGEST_RECOVERY_MS = 180_000;

/** The database of a side. */
export function databaseOf(folder: string, side: SideName): string {
  return `sqlite:${join(folder, `${side}.db`)}`;
}

/** Null when interrupted. */
export async function runOutage(
  folder: string,
  outageMs: number,
  view: OutageView,
  interrupted: AbortSignal,
): Promise<OutageSummary | null> {
  const service = new Service();
  const sides: Side[] = [];
  try {
    await service.switchOn();
    for (const name of ['ungated', 'gated'] as const) {
      const onLog = (text: string): void => view.event(name, text);
      sides.push(await Side.open(name, databaseOf(folder, name), service, onLog));
    }
    return await new Outage(service, sides, outageMs, view).run(interrupted);
  } finally {
    view.end();
    await Promise.all(sides.map((side) => side.close(interrupted.aborted ? 0 : 1_000)));
    await service.switchOff();
  }
}

class Outage {
  readonly #service: Service;
  readonly #sides: readonly Side[];
  readonly #outageMs: number;
  readonly #offAfterMs: number;
  readonly #view: OutageView;
  readonly #startedAt = systemClock.monotonic();
  #enqueued = 0;
  /** When the service was back, in wall-clock time: jobs say in wall-clock time when they ended. */
  #backAt: number | null = null;

  constructor(service: Service, sides: readonly Side[], outageMs: number, view: OutageView) {
    this.#service = service;
    this.#sides = sides;
    this.#outageMs = outageMs;
    this.#offAfterMs = Math.min(WARM_UP_MS, outageMs * WARM_UP_SHARE);
    this.#view = view;
  }

  async run(interrupted: AbortSignal): Promise<OutageSummary | null> {
    for (let tick = 0; !interrupted.aborted; tick++) {
      await this.#switch();
      await this.#arrive();
      if (tick % DRAW_EVERY_TICKS === 0) {
        const picture = await this.#picture();
        this.#view.show(picture);
        if (this.#backAt !== null && isOver(picture)) return summarise(picture, this.#outageMs, this.#backAt);
        if (this.#elapsed() > this.#offAfterMs + this.#outageMs + LONGEST_RECOVERY_MS) throw tooSlow(picture);
      }
      await pause(TICK_MS, interrupted);
    }
    return null;
  }

  async #switch(): Promise<void> {
    const sinceOff = this.#elapsed() - this.#offAfterMs;
    if (sinceOff >= this.#outageMs && this.#backAt === null) {
      await this.#service.switchOn();
      this.#backAt = systemClock.now();
    } else if (sinceOff >= 0 && this.#backAt === null && this.#service.isOn) {
      await this.#service.switchOff();
    }
  }

  async #arrive(): Promise<void> {
    const untilMs = Math.min(this.#elapsed(), this.#offAfterMs + this.#outageMs);
    const count = Math.floor((untilMs * JOBS_PER_SECOND) / 1_000) - this.#enqueued;
    this.#enqueued += count;
    await Promise.all(this.#sides.map((side) => side.enqueue(count)));
  }

  async #picture(): Promise<Picture> {
    const [ungated, gated] = await Promise.all(this.#sides.map((side) => side.figures()));
    if (ungated === undefined || gated === undefined) throw new Error('expected two sides');
    const elapsedMs = this.#elapsed();
    return {
      elapsedMs,
      offSinceMs: this.#offAfterMs,
      offForMs: this.#outageMs,
      isOn: this.#service.isOn,
      ungated,
      gated,
    };
  }

  #elapsed(): number {
    return systemClock.monotonic() - this.#startedAt;
  }
}

function isOver({ ungated, gated }: Picture): boolean {
  return [ungated, gated].every(({ jobs }) => jobs.every(({ state }) => isTerminal(state)));
}

function tooSlow({ ungated, gated }: Picture): Failure {
  const open = [...ungated.jobs, ...gated.jobs].filter(({ state }) => !isTerminal(state)).length;
  return new Failure(
    'NOT_DONE',
    `expected all jobs to end within ${LONGEST_RECOVERY_MS / 1_000} s of the outage, got ${open} that have not ended.`,
  );
}
