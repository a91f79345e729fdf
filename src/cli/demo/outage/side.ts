import { systemClock } from '../../../clock.ts';
import { defineJob, type JobDefinition } from '../../../definition.ts';
import type { Job } from '../../../job.ts';
import { Mulligan } from '../../../mulligan.ts';
import type { GateInfo } from '../../../observe/gate-info.ts';
import { printable } from '../../../printable.ts';
import type { Service } from './service.ts';

export const RESOURCE = 'service';
const WORKERS = 2;
const CONCURRENCY = 10;
/** More than the longest outage can make. */
const MOST_JOBS = 10_000;

export type SideName = 'ungated' | 'gated';

/** One of the two queues that call the service: same jobs, same policy, one with a gate and one without. */
export class Side {
  readonly name: SideName;
  readonly #mulligan: Mulligan;
  readonly #definition: JobDefinition<null>;
  readonly #calls: Calls;

  private constructor(name: SideName, mulligan: Mulligan, definition: JobDefinition<null>, calls: Calls) {
    this.name = name;
    this.#mulligan = mulligan;
    this.#definition = definition;
    this.#calls = calls;
  }

  static async open(name: SideName, url: string, service: Service, onLog: (text: string) => void): Promise<Side> {
    const calls = new Calls();
    const definition = defineJob<null>({
      name: 'service.call',
      // Without a word about resources the job's name would be a soft gate, and an outage would not cost attempts either.
      resource: name === 'gated' ? RESOURCE : false,
      async run(_, { signal }) {
        calls.add(service.isOn);
        const response = await fetch(service.url, { signal });
        await response.text();
      },
    });
    const mulligan = await Mulligan.open(url, {
      jobs: [definition],
      log: ({ level, message }) => (level === 'debug' ? undefined : onLog(printable(message))),
    });
    for (let n = 1; n <= WORKERS; n++) mulligan.work({ concurrency: CONCURRENCY, name: `worker-${n}` });
    return new Side(name, mulligan, definition, calls);
  }

  async enqueue(count: number): Promise<void> {
    if (count > 0)
      await this.#mulligan.enqueueMany(
        this.#definition,
        Array<null>(count)
          .fill(null)
          .map((input) => ({ input })),
      );
  }

  async figures(): Promise<SideFigures> {
    const [jobs, gate] = await Promise.all([this.#mulligan.jobs.list({ limit: MOST_JOBS }), this.#gate()]);
    const { perSecond, whileOff } = this.#calls;
    return { jobs, gate, callsPerSecond: perSecond(), callsWhileOff: whileOff };
  }

  async #gate(): Promise<GateInfo | null> {
    if (this.name === 'ungated') return null;
    return (await this.#mulligan.gates.show(RESOURCE, { kind: 'resource' })).gate;
  }

  close(grace: number): Promise<void> {
    return this.#mulligan.close({ grace });
  }
}

export interface SideFigures {
  readonly jobs: readonly Job[];
  readonly gate: GateInfo | null;
  /** One number per second since the start; the last one is of a second that has not ended. */
  readonly callsPerSecond: readonly number[];
  /** Calls made while the service was switched off. */
  readonly callsWhileOff: number;
}

/** Counted by the jobs: a service that is down cannot count. */
class Calls {
  readonly #startedAt = systemClock.monotonic();
  readonly #perSecond: number[] = [];
  whileOff = 0;

  add(isOn: boolean): void {
    const second = this.#second();
    this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
    if (!isOn) this.whileOff++;
  }

  readonly perSecond = (): number[] => Array.from({ length: this.#second() + 1 }, (_, at) => this.#perSecond[at] ?? 0);

  #second(): number {
    return Math.floor((systemClock.monotonic() - this.#startedAt) / 1_000);
  }
}
