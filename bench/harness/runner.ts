import { fork } from 'node:child_process';
import type { Readable } from 'node:stream';
import { notQuick } from '../peers/index.ts';
import type { CellTask, FromCell } from './cell.ts';
import { type Machine, machine } from './machine.ts';
import { median, rotate, wall } from './measure.ts';
import type { Peer } from './peer.ts';
import { postgresSettings, startServers } from './servers.ts';
import type { Workload } from './workload.ts';

const CELL = new URL('./cell.ts', import.meta.url);

export interface RunOptions {
  readonly workloads: readonly Workload[];
  readonly peers: readonly Peer[];
  /** Named among the results, with this as the reason why they have none. */
  readonly leftOut: readonly Peer[];
  readonly rounds: number;
  readonly quick: boolean;
  /** The peers were asked for by name, so a quick run leaves none out. */
  readonly named: boolean;
  /** The workloads were asked for by name, so a quick run takes the time they need. */
  readonly chosen: boolean;
  say(text: string): void;
}

export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly values: readonly number[];
}

export interface PeerResult {
  readonly figures: Readonly<Record<string, Figure>>;
  readonly notes: readonly string[];
  /** One per round that went wrong. */
  readonly failures: readonly string[];
}

export interface WorkloadResult {
  readonly at: string;
  readonly rounds: number;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly servers: Readonly<Record<string, string>>;
  readonly peers: Readonly<Record<string, PeerResult>>;
  /** Peers that took no part, with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

export type Results = Readonly<Record<string, WorkloadResult>>;

export async function runAll(options: RunOptions): Promise<Results> {
  const { say } = options;
  const startedAt = wall();
  say('starting the servers');
  const servers = await startServers({
    postgres: options.peers.some(({ engine }) => engine === 'postgres'),
    redis: options.peers.some(({ engine }) => engine === 'redis'),
  });
  try {
    const versions: Record<string, string> = {};
    if ('version' in servers.postgres) {
      const settings = Object.entries(postgresSettings).map(([name, value]) => `${name}=${value}`);
      versions.PostgreSQL = `${servers.postgres.version} (${settings.join(', ')})`;
    }
    if ('version' in servers.redisAlways) versions.Redis = `${servers.redisAlways.version} (appendonly=yes)`;
    const missing = new Map(options.leftOut.map(({ id }) => [id, 'left out of this run']));
    for (const peer of options.peers.filter(({ id }) => !missing.has(id))) {
      const reason = await peer.unavailable(servers);
      if (reason === null) continue;
      missing.set(peer.id, reason);
      say(`${peer.title} cannot run: ${reason}`);
    }
    const { stop: _, ...plain } = servers;
    const results: Record<string, WorkloadResult> = {};
    for (const workload of options.workloads) {
      const absent = new Map(missing);
      const concerned = options.peers.filter(({ id }) => workload.peers?.includes(id) ?? true);
      for (const peer of concerned) {
        const reason = peer.skips?.[workload.id];
        if (reason !== undefined && !absent.has(peer.id)) absent.set(peer.id, reason);
      }
      for (const { id } of options.quick && !options.named ? options.peers : []) {
        if (notQuick.has(id) && !absent.has(id)) absent.set(id, 'left out of quick runs');
      }
      const present = concerned.filter(({ id }) => !absent.has(id));
      const tables = new Map(present.map(({ id }) => [id, { rounds: [] as Round[] }]));
      const rounds = Math.min(options.rounds, workload.mostRounds ?? options.rounds);
      const turns = workload.ownRounds ? 1 : rounds;
      for (let round = 0; round < turns; round++) {
        const order = rotate(present, round).filter(({ mostRounds = turns }) => round < mostRounds);
        for (const [index, peer] of order.entries()) {
          const where = `${workload.id} round ${round + 1} of ${turns}, ${index + 1} of ${order.length}: ${peer.id}`;
          const task = {
            peer: peer.id,
            workload: workload.id,
            servers: plain,
            quick: options.quick,
            rounds,
          };
          const late = options.quick && !options.chosen && wall() > startedAt + QUICK_MS;
          const answer = late
            ? ({ type: 'done', values: {}, notes: ['no time was left in a quick run'] } as const)
            : await runCell(task, (text) => say(`${where}: ${text}`), patience(workload, options));
          tables.get(peer.id)?.rounds.push(answer);
          say(`${where}: ${summary(workload, answer)}`);
        }
      }
      results[workload.id] = {
        at: new Date().toISOString(),
        rounds,
        quick: options.quick,
        machine: machine(servers.folder),
        servers: versions,
        peers: Object.fromEntries([...tables].map(([id, { rounds }]) => [id, merge(workload, rounds)])),
        absent: Object.fromEntries(absent),
      };
    }
    say(`done in ${Math.round((wall() - startedAt) / 1_000)} s`);
    return results;
  } finally {
    await servers.stop();
  }
}

export type Round = Extract<FromCell, { type: 'done' | 'failed' }>;

const CELL_PATIENCE_MS = { quick: 25_000, full: 45 * 60_000 };
/** A quick run ends within three minutes: after this long, no further measurement is begun. */
const QUICK_MS = 150_000;

function patience(workload: Workload, { quick }: RunOptions): number {
  return quick && workload.notQuick === undefined ? CELL_PATIENCE_MS.quick : CELL_PATIENCE_MS.full;
}

export async function runCell(
  task: CellTask,
  progress: (text: string) => void,
  patienceMs: number,
  cell: URL = CELL,
): Promise<Round> {
  const child = fork(cell, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const complaint = new Complaint(child.stderr as Readable);
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
  try {
    return await new Promise<Round>((resolve) => {
      child.on('message', (message: FromCell) => {
        if (message.type === 'progress') progress(message.text);
        else resolve(message);
      });
      // Not the exit: by now all that it said has come.
      child.on('close', (code, signal) => {
        const why =
          signal === 'SIGKILL'
            ? `took longer than ${patienceMs / 1_000} s`
            : `ended early (${signal ?? code})${complaint}`;
        resolve({ type: 'failed', reason: why });
      });
      child.send(task);
    });
  } finally {
    clearTimeout(timer);
    const gone = child.exitCode !== null || child.signalCode !== null;
    const exit = gone ? null : new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exit;
  }
}

const MOST_KEPT = 100_000;

/** Passes on what a process says on standard error, and keeps the line with which it died. */
class Complaint {
  #said = '';

  constructor(stream: Readable) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      process.stderr.write(text);
      if (this.#said.length < MOST_KEPT) this.#said += text;
    });
  }

  toString(): string {
    const line = /^\w*error: .*$/im.exec(this.#said)?.[0];
    return line === undefined ? '' : `: ${line}`;
  }
}

function merge(workload: Workload, rounds: readonly Round[]): PeerResult {
  const failures = rounds.filter((round) => round.type === 'failed').map((round) => round.reason);
  // A rate at which jobs run the wrong number of times is none.
  const done = failures.some(isWrong) ? [] : rounds.filter((round) => round.type === 'done');
  const figures: Record<string, Figure> = {};
  for (const { key } of workload.metrics) {
    const values = done.flatMap((round) => round.values[key] ?? []);
    if (values.length === 0) continue;
    figures[key] = { median: median(values), min: Math.min(...values), max: Math.max(...values), values };
  }
  return {
    figures,
    notes: [...new Set(done.flatMap((round) => round.notes))],
    failures,
  };
}

/** A peer that is slow is a result; one that runs a job the wrong number of times is an error. */
export function isWrong(failure: string): boolean {
  return failure.startsWith('wrong:');
}

export function summary(workload: Workload, round: Round): string {
  if (round.type === 'failed') return `FAILED: ${round.reason}`;
  const parts = workload.metrics
    .filter(({ key }) => round.values[key] !== undefined)
    .map(({ key, title, unit }) => `${title} ${show(median(round.values[key] as number[]), unit)}`);
  const notes = round.notes.length === 0 ? '' : `(${round.notes.join('; ')})`;
  return `${parts.join(' · ')} ${notes}`.trim();
}

/** Three significant digits say all that a benchmark can. */
export function show(value: number, unit: string): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const space = /^[a-zµ]/i.test(unit) && unit !== 'x' ? ' ' : '';
  return `${value.toLocaleString('en', { maximumFractionDigits: digits })}${space}${unit}`;
}

/** By name, or by the beginning of one. */
export function pick<T extends { readonly id: string }>(
  all: readonly T[],
  wanted: readonly string[] | undefined,
  flag: string,
): T[] {
  if (wanted === undefined) return [...all];
  const found = wanted.flatMap((name) => {
    const known = (matches: (id: string) => boolean): T[] => all.filter(({ id }) => matches(id.toLowerCase()));
    const given = name.trim().toLowerCase();
    const exact = known((id) => id === given);
    const near = exact.length > 0 || given === '' ? exact : known((id) => id.startsWith(given));
    if (near.length > 0) return near;
    throw new Error(`${flag}: expected some of ${all.map(({ id }) => id).join(', ')}, got ${JSON.stringify(name)}`);
  });
  return all.filter((one) => found.includes(one));
}
