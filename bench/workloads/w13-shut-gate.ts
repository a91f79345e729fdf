import type { Crew } from '../harness/crew.ts';
import { percentile, rotate, sleep, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { arrive, CONCURRENCY, type Metric, type Stage, type Workload } from '../harness/workload.ts';

const PER_SECOND = { noop: 25, call: 25, once: 15 } as const;
/** One slice on each queue in turn. */
const SLICE_SECONDS = 5;
const SLICES = 8;
const WARM_SECONDS = 2;

const WAITS = [
  { key: 'noop', title: 'fresh jobs without a resource' },
  { key: 'call', title: 'fresh jobs of another resource' },
  { key: 'once', title: 'second attempts' },
] as const;

export const w13: Workload = {
  id: 'W13',
  title: 'Jobs beside a shut gate',
  what:
    '1,000,000 jobs (50,000 in a quick run) wait behind a gate that is open, and whose probes fail. In the same queue jobs arrive: ' +
    `${PER_SECOND.noop} per second without a resource, ${PER_SECOND.call} of another resource, and ${PER_SECOND.once} that fail once and succeed a ` +
    `second later; one worker process with concurrency ${CONCURRENCY}. Beside it a queue without the million. The jobs arrive in slices of ` +
    `${SLICE_SECONDS} s, in turn on both. How long fresh jobs wait for their start, and how long after its due time a second attempt ` +
    'starts (by the ledger); ratios are of the values over all slices. Checked: each job that arrived has completed.',
  peers: ['mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes a minute per store',
  metrics: WAITS.flatMap(({ key, title }) =>
    (['50', '99'] as const).flatMap((part): Metric[] => [
      { key: `${key}${part}calm`, title: `${title}, p${part} without the million`, unit: 'ms', better: 'lower' },
      { key: `${key}${part}shut`, title: `${title}, p${part} with it`, unit: 'ms', better: 'lower' },
      { key: `${key}${part}ratio`, title: `${title}, p${part}, with to without`, unit: 'x', better: 'lower' },
    ]),
  ),
  async run(stage) {
    const gated = stage.guarded('soft');
    const jobs = stage.size(1_000_000, 50_000);
    const calm = await gated.open('calm');
    const shut = await gated.open('shut');
    if (shut.gates === undefined) throw new Error('it has no gates');
    stage.say(`filling ${jobs} jobs behind an open gate`);
    await (await shut.gates()).shut(jobs);
    await shut.settleDown(true);
    const slices = stage.size(SLICES, 1);
    const both = [await Queue.start(gated, calm, 'calm', slices), await Queue.start(gated, shut, 'shut', slices)];
    for (let slice = 0; slice < slices; slice++) {
      for (const queue of rotate(both, slice)) {
        stage.say(`slice ${slice + 1} of ${slices}, ${queue.name}`);
        await queue.slice(stage.size(SLICE_SECONDS, 2));
      }
    }
    const [without, with_] = [await both[0]?.end(stage), await both[1]?.end(stage)];
    for (const { key } of WAITS) {
      for (const part of [50, 99]) {
        const before = percentile(without?.[key] ?? [], part / 100);
        const after = percentile(with_?.[key] ?? [], part / 100);
        stage.set(`${key}${part}calm`, before);
        stage.set(`${key}${part}shut`, after);
        stage.set(`${key}${part}ratio`, after / before);
      }
    }
    await gated.close();
  },
};

type Waits = Readonly<Record<(typeof WAITS)[number]['key'], readonly number[]>>;

/** One of the two queues, and its worker. */
class Queue {
  readonly name: string;
  readonly #queue: OpenPeer;
  readonly #crew: Crew;
  #sent = { noop: 0, call: 0, once: 0 };
  readonly #room: number;

  private constructor(name: string, queue: OpenPeer, crew: Crew, room: number) {
    this.name = name;
    this.#queue = queue;
    this.#crew = crew;
    this.#room = room;
  }

  static async start(stage: Stage, queue: OpenPeer, name: string, slices: number): Promise<Queue> {
    const room = (slices * SLICE_SECONDS + WARM_SECONDS) * Math.max(...Object.values(PER_SECOND));
    const crew = await stage.crew(1, queue, { jobs: 3 * room }, name);
    await crew.go();
    const started = new Queue(name, queue, crew, room);
    return started;
  }

  async slice(seconds: number): Promise<void> {
    const kinds = ['noop', 'call', 'once'] as const;
    await Promise.all(
      kinds.map(async (kind, index) => {
        const count = seconds * PER_SECOND[kind];
        const from = index * this.#room + this.#sent[kind];
        this.#sent[kind] += count;
        await arrive(this.#queue, count, PER_SECOND[kind], { kind, from });
      }),
    );
    const { noop, call, once } = this.#sent;
    const all = noop + call + once;
    if (!(await this.#crew.until(({ completed }) => completed >= all, wall() + 60_000)))
      throw new Error(`wrong: ${this.#crew.progress().completed} of ${all} jobs have completed`);
  }

  async end(stage: Stage): Promise<Waits> {
    const patience = wall() + 10_000;
    let once = (await this.#queue.secondAttempts?.('once')) ?? [];
    while (once.length < this.#sent.once && wall() < patience) {
      await sleep(50);
      once = (await this.#queue.secondAttempts?.('once')) ?? [];
    }
    stage.note(`${this.name}: ${this.#crew.progress().refused} probes were refused`);
    const [report] = await this.#crew.dismiss();
    const waits = report?.waits ?? [];
    const numbers = report?.waitsOf ?? [];
    const of = (index: number): number[] =>
      waits.filter((_, n) => Math.floor((numbers[n] ?? -1) / this.#room) === index);
    return { noop: of(0), call: of(1), once };
  }
}
