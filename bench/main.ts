import { runAgainst } from './against.ts';
import { machine } from './harness/machine.ts';
import { isWrong, pick, type Results, runAll } from './harness/runner.ts';
import { allPeers } from './peers/index.ts';
import { writeDocument } from './report/document.ts';
import { compare, ratios, withLimits } from './report/ratios.ts';
import { readResults, writeResults } from './report/results.ts';
import { asText } from './report/text.ts';
import { workloads } from './workloads/index.ts';

export interface Arguments {
  readonly workload?: string[] | undefined;
  readonly peer?: string[] | undefined;
  readonly without?: string[] | undefined;
  readonly rounds?: string | undefined;
  readonly tolerance?: string | undefined;
  readonly against?: string | undefined;
  readonly store?: string[] | undefined;
  readonly quick: boolean;
  readonly json: boolean;
  readonly check: boolean;
  readonly report: boolean;
}

const DEFAULT_TOLERANCE = 0.3;
/** What `--check` runs unless told otherwise: the workloads that have ratios and do not take long. */
const CHECKED = ['W1', 'W2', 'W3', 'W6'];
const CHECKED_PEERS = ['mulligan-sqlite', 'mulligan-postgres', 'raw-sqlite', 'raw-postgres-update'];

/** Returns the exit code. */
export async function main(given: Arguments): Promise<number> {
  const { quick, check } = given;
  const everyone = await allPeers();
  if (given.report) {
    writeDocument(readResults(false), workloads, everyone);
    return 0;
  }
  const rounds = wholeNumber(given.rounds ?? (quick ? '1' : '5'), '--rounds');
  const tolerance = share(given.tolerance ?? String(DEFAULT_TOLERANCE), '--tolerance');
  const wantedWorkloads = split(given.workload) ?? (check ? CHECKED : undefined);
  const wantedPeers = split(given.peer) ?? (check ? CHECKED_PEERS : undefined);
  const chosen = pick(workloads, wantedWorkloads, '--workload').filter(({ notQuick, id }) => {
    if (!quick || wantedWorkloads !== undefined || notQuick === undefined) return true;
    say(`${id} is left out of a quick run: ${notQuick}`);
    return false;
  });
  if (given.against !== undefined) {
    const stores = (split(given.store) ?? ['sqlite', 'postgres']).map((store) => `mulligan-${store}`);
    const own = everyone.filter(({ id }) => id.startsWith('mulligan-'));
    const peers = pick(own, stores, '--store');
    return await runAgainst({ revision: given.against, workloads: chosen, peers, rounds, quick, say });
  }
  const named = pick(everyone, wantedPeers, '--peer');
  const leftOut = given.without === undefined ? [] : pick(everyone, split(given.without), '--without');
  const peers = check ? withLimits(named, everyone) : named;
  const expected = ratios(readResults(quick), chosen, peers);
  if (check && expected.size === 0) {
    console.error(`nothing to check against: bench/results/${quick ? 'quick' : 'full'}.json holds no ratio of these`);
    return 1;
  }
  const { cpu, cores, memoryGb, system, node, sqlite } = machine('.');
  say(`${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, Node.js ${node}, SQLite ${sqlite}`);
  const results = await runAll({
    workloads: chosen,
    peers,
    leftOut,
    rounds,
    quick,
    named: wantedPeers !== undefined,
    chosen: wantedWorkloads !== undefined,
    say,
  });
  if (given.json) console.log(JSON.stringify(results, null, 2));
  else console.log(asText(results, chosen, peers));
  const failed = wrong(results);
  if (check) {
    const worse = judge(expected, ratios(results, chosen, peers), tolerance, given.json ? console.error : console.log);
    return worse || failed ? 1 : 0;
  }
  // Without others to compare with, or without what is compared, they are shown and not kept.
  if (wantedPeers === undefined && !leftOut.some(({ id }) => CHECKED_PEERS.includes(id))) {
    const all = writeResults(results, quick);
    say(`written: bench/results/${quick ? 'quick' : 'full'}.json`);
    if (!quick) {
      writeDocument(all, workloads, everyone);
      say('written: docs/benchmarks.md and its charts');
    }
  }
  return failed ? 1 : 0;
}

function wrong(results: Results): boolean {
  return Object.values(results).some(({ peers }) =>
    Object.values(peers).some(({ failures }) => failures.some(isWrong)),
  );
}

/** Returns whether something is worse than it was. */
function judge(
  expected: ReadonlyMap<string, number>,
  now: ReadonlyMap<string, number>,
  tolerance: number,
  write: (line: string) => void,
): boolean {
  const verdicts = compare(expected, now, tolerance);
  write(`\nratios, at most ${Math.round(tolerance * 100)} % worse than the stored ones`);
  for (const { name, expected: before, now: measured, bad } of verdicts) {
    write(`${bad ? 'WORSE' : 'ok   '} ${name}: ${measured?.toFixed(2) ?? 'none'}, stored ${before.toFixed(2)}`);
  }
  return verdicts.some(({ bad }) => bad);
}

function split(list: readonly string[] | undefined): string[] | undefined {
  return list?.flatMap((item) => item.split(','));
}

const MOST_ROUNDS = 100;

function wholeNumber(text: string, flag: string): number {
  if (/^[0-9]+$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_ROUNDS) return Number(text);
  throw new Error(`${flag}: expected a whole number from 1 to ${MOST_ROUNDS}, got ${JSON.stringify(text)}`);
}

function share(text: string, flag: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value < 1) return value;
  throw new Error(`${flag}: expected a number from 0 to below 1, got ${JSON.stringify(text)}`);
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
