import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, rotate } from './harness/measure.ts';
import type { Peer } from './harness/peer.ts';
import { type Round, runCell, show, summary } from './harness/runner.ts';
import { startServers } from './harness/servers.ts';
import type { Metric, Workload } from './harness/workload.ts';

/*
 * Two versions of Mulligan in one run: an older commit and the working tree, in turn, on the same server and machine.
 *
 * The older commit is built in a temporary git worktree. The benchmark of the working tree measures both, so that a change
 * of a workload is not taken for a change of speed. Only the files that write the tables of a version directly
 * (peers/*-fill.ts) stay those of the commit.
 */
export interface AgainstOptions {
  readonly revision: string;
  readonly workloads: readonly Workload[];
  readonly peers: readonly Peer[];
  readonly rounds: number;
  readonly quick: boolean;
  say(text: string): void;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const CELL_PATIENCE_MS = 45 * 60_000;

/** Prints the medians of both versions and their ratios. Returns the exit code. */
export async function runAgainst(options: AgainstOptions): Promise<number> {
  const { revision, workloads, peers, rounds, quick, say } = options;
  say(`building ${revision} in a temporary worktree`);
  const old = checkOut(revision, peers);
  const servers = await startServers({ postgres: peers.some(({ engine }) => engine === 'postgres'), redis: false });
  try {
    const { stop: _, ...plain } = servers;
    const versions = [
      { name: old.commit, cell: new URL(`file://${old.folder}/bench/harness/cell.ts`) },
      { name: 'working tree', cell: new URL('./harness/cell.ts', import.meta.url) },
    ];
    let failed = false;
    const lines: string[] = [];
    for (const workload of workloads) {
      for (const peer of peers.filter(({ id }) => workload.peers?.includes(id) ?? true)) {
        const answers = new Map(versions.map(({ name }) => [name, [] as Round[]]));
        const turns = workload.ownRounds ? 1 : rounds;
        for (let round = 0; round < turns; round++) {
          // Each version goes first every second round, so that neither always finds the caches of the other.
          for (const { name, cell } of rotate(versions, round)) {
            const where = `${workload.id} ${peer.id} round ${round + 1} of ${turns}, ${name}`;
            const task = { peer: peer.id, workload: workload.id, servers: plain, quick, rounds };
            const answer = await runCell(task, (text) => say(`${where}: ${text}`), CELL_PATIENCE_MS, cell);
            say(`${where}: ${summary(workload, answer)}`);
            failed ||= answer.type === 'failed';
            answers.get(name)?.push(answer);
          }
        }
        lines.push(
          '',
          `${workload.id} ${workload.title}, ${peer.engine}, medians of ${rounds === 1 ? '1 round' : `${rounds} rounds`}`,
        );
        const [before = [], after = []] = answers.values();
        lines.push(...compare(workload, before, after, old.commit));
      }
    }
    console.log(lines.join('\n'));
    return failed ? 1 : 0;
  } finally {
    await servers.stop();
    old.remove();
  }
}

function compare(workload: Workload, before: readonly Round[], after: readonly Round[], commit: string): string[] {
  const rows = [['', commit, 'working tree', 'new / old', '']];
  for (const { key, title, unit, better } of workload.metrics) {
    const [old, now] = [values(before, key), values(after, key)];
    if (old.length === 0 || now.length === 0) continue;
    const ratio = median(now) / median(old);
    rows.push([title, withSpread(old, unit), withSpread(now, unit), ratio.toFixed(2), verdict(ratio, better)]);
  }
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Less than this is noise, even in medians. */
const NOISE = 0.1;

function verdict(ratio: number, better: Metric['better']): string {
  if (better === 'neither' || Math.abs(ratio - 1) <= NOISE) return '';
  return ratio > 1 === (better === 'higher') ? 'better' : 'worse';
}

function values(rounds: readonly Round[], key: string): number[] {
  return rounds.flatMap((round) => (round.type === 'done' ? (round.values[key] ?? []) : []));
}

function withSpread(of: readonly number[], unit: string): string {
  const spread = of.length > 1 ? ` (${show(Math.min(...of), '')}-${show(Math.max(...of), '')})` : '';
  return `${show(median(of), unit)}${spread}`;
}

interface CheckedOut {
  readonly commit: string;
  readonly folder: string;
  remove(): void;
}

function checkOut(revision: string, peers: readonly Peer[]): CheckedOut {
  const commit = git('rev-parse', '--short', '--verify', `${revision}^{commit}`);
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'mulligan-against-'));
  const remove = (): void => {
    spawnSync('git', ['worktree', 'remove', '--force', folder], { cwd: root, stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true });
  };
  // Also when the run is ended by a signal: the servers then end the process.
  process.once('exit', remove);
  git('worktree', 'add', '--detach', folder, commit);
  symlinkSync(realpathSync(join(root, 'node_modules')), join(folder, 'node_modules'), 'dir');
  const kept = /-fill\.ts$|^node_modules$|^results$/;
  cpSync(join(root, 'bench'), join(folder, 'bench'), {
    recursive: true,
    force: true,
    filter: (path) => !kept.test(basename(path)),
  });
  symlinkSync(realpathSync(join(root, 'bench/node_modules')), join(folder, 'bench/node_modules'), 'dir');
  run('npm', ['run', '-s', 'build'], folder);
  run(process.execPath, ['bench/harness/warm.ts', ...peers.map(({ id }) => id)], folder);
  return { commit, folder, remove };
}

function git(...args: string[]): string {
  return run('git', args, root).trim();
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? (stderr || stdout).trim()}`);
}
