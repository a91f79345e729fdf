import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { defineJob, type JobDefinition, Mulligan } from '../../src/index.ts';
import { seededRandom } from '../../src/seeded-random.ts';
import { arrivalsOf } from '../../src/simulate/arrivals.ts';
import { Dependency } from '../../src/simulate/dependency.ts';
import { type Figures, figuresOf } from '../../src/simulate/figures.ts';
import { readPolicy } from '../../src/simulate/policies.ts';
import { Recorder } from '../../src/simulate/recorder.ts';
import type { ReadScenario } from '../../src/simulate/scenario.ts';

/*
 * A scenario in real time: workers on a SQLite file call an HTTP server over sockets. In an outage nothing listens on its
 * port. Service times and the capacity are those of the model; all else is real.
 */

const STEP_MS = 1_000;
const SEED = 1;
const pause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.after(ms, resolve));

export async function runReal(scenario: ReadScenario, policyName: string): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-real-'));
  let startedAt = systemClock.monotonic();
  const elapsedMs = (): number => systemClock.monotonic() - startedAt;
  const recorder = new Recorder(elapsedMs, STEP_MS);
  const service = await Service.open(scenario, elapsedMs);
  const job = jobOf(policyName, service, recorder);
  const mulligans = await Promise.all(
    Array.from({ length: scenario.workers }, () =>
      Mulligan.open(`sqlite:${join(folder, 'jobs.db')}`, { jobs: [job], log: () => {} }),
    ),
  );
  try {
    // Opening takes time: arrivals that were late from the start would come in one burst.
    startedAt = systemClock.monotonic();
    for (const [index, mulligan] of mulligans.entries()) {
      recorder.watch(mulligan);
      mulligan.work({
        concurrency: scenario.concurrency,
        retryShare: scenario.retryShare,
        name: `worker-${index + 1}`,
      });
    }
    await Promise.all([
      service.follow(scenario.dependency.outages),
      arrive(scenario, mulligans[0] as Mulligan, job, recorder, elapsedMs),
      sample(scenario, recorder, elapsedMs),
    ]);
    return figuresOf(scenario, recorder, STEP_MS);
  } finally {
    await Promise.all(mulligans.map((mulligan) => mulligan.close({ grace: 0 })));
    service.close();
    rmSync(folder, { recursive: true });
  }
}

async function arrive(
  scenario: ReadScenario,
  mulligan: Mulligan,
  job: JobDefinition<number>,
  recorder: Recorder,
  elapsedMs: () => number,
): Promise<void> {
  const answers: Promise<void>[] = [];
  for (const at of arrivalsOf(scenario, SEED)) {
    if (at > elapsedMs()) await pause(at - elapsedMs());
    answers.push(mulligan.enqueue(job, 0).then(({ id }) => recorder.arrived(id)));
  }
  await Promise.all(answers);
}

async function sample(
  { durationMs, drainMs }: ReadScenario,
  recorder: Recorder,
  elapsedMs: () => number,
): Promise<void> {
  for (let step = 1; elapsedMs() < durationMs || (recorder.left > 0 && elapsedMs() < durationMs + drainMs); step++) {
    await pause(step * STEP_MS - elapsedMs());
    recorder.sample(null);
  }
}

function jobOf(policyName: string, service: Service, recorder: Recorder): JobDefinition<number> {
  const { retry, gate } = readPolicy(policyName, 'policy');
  return defineJob<number>({
    name: 'call',
    retry,
    resource: gate === 'none' ? false : 'dependency',
    run: async (_, { run, signal }) => {
      recorder.called(run);
      try {
        const answer = await fetch(service.url, { signal });
        await answer.text();
        if (!answer.ok) throw Object.assign(new Error(answer.statusText), { status: answer.status });
        recorder.answered('successes');
      } catch (error) {
        recorder.answered('failures');
        throw error;
      }
    },
  });
}

class Service {
  readonly url: string;
  readonly #server: Server;
  readonly #port: number;
  readonly #elapsedMs: () => number;

  private constructor(server: Server, elapsedMs: () => number) {
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    this.#elapsedMs = elapsedMs;
    this.url = `http://127.0.0.1:${this.#port}/`;
  }

  static async open({ dependency: options }: ReadScenario, elapsedMs: () => number): Promise<Service> {
    // The server is away in an outage: the model must not fail calls on top of that.
    const dependency = new Dependency({ ...options, outages: [] }, seededRandom(SEED));
    const server = createServer((_, response) => {
      const { kind, durationMs } = dependency.call(elapsedMs(), null);
      systemClock.after(durationMs, () => response.writeHead(kind === 'ok' ? 200 : 503).end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Service(server, elapsedMs);
  }

  /** Is away while each outage lasts. */
  async follow(outages: ReadScenario['dependency']['outages']): Promise<void> {
    for (const { fromMs, untilMs } of outages) {
      await pause(fromMs - this.#elapsedMs());
      this.close();
      await pause(untilMs - this.#elapsedMs());
      await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    }
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
