import { systemClock } from '../../dist/clock.js';
import { foldRuns, type GateReport } from '../../dist/gate/index.js';
import type { Store, WorkerReport } from '../../dist/store/store.js';
import { pruneWith } from '../../src/store/conformance/builders.ts';
import type { Gated } from '../harness/peer.ts';
import { claimKept, enqueueMany, type Place, SHUT } from './mulligan.ts';

/* Gates of Mulligan's stores, brought into their state by the reports that workers would have sent. */

const REPORTS_AT_ONCE = 1_000;
/** Of different jobs: enough for the fast rule. */
const FAILURES_THAT_OPEN = 20;
const OPEN_HOST = 'webhook/down-';
const HEALTHY_HOST = 'webhook/host-';
const TABLES = ['gates', 'gate_history', 'partitions', 'strings'];
/** A call of `prune` looks at a part of the rows, so one that changes nothing is no proof. */
const IDLE_CALLS = 150;
const PRUNED_AT_ONCE = 10_000;

/** Calls a function with another store, for which commits need not wait for the disk. */
export type Filled = (fill: (store: Store) => Promise<void>) => Promise<void>;

export class MulliganGates implements Gated {
  readonly #place: Place;
  readonly #store: Store;
  readonly #filled: Filled;

  constructor(place: Place, store: Store, filled: Filled) {
    this.#place = place;
    this.#store = store;
    this.#filled = filled;
  }

  shut(jobs: number): Promise<void> {
    return this.#filled(async (store) => {
      await enqueueMany(store, jobs, () => ({ kind: 'down', resource: SHUT }));
      await send(store, [{ gate: { kind: 'resource', name: SHUT }, report: failures(FAILURES_THAT_OPEN) }]);
    });
  }

  fill(jobs: number, gates: number, open: number): Promise<void> {
    const resource = (n: number): string => (n < open ? OPEN_HOST : HEALTHY_HOST) + n;
    return this.#filled(async (store) => {
      await enqueueMany(store, jobs, (n) => {
        // The jobs of a gate one after the other: a call then concerns few partitions, which is faster.
        const gate = Math.floor((n * gates) / jobs);
        return { kind: gate < open ? 'down' : 'noop', resource: resource(gate) };
      });
      // Few of many open at any time, after the others have reported: else it would look like an outage of the parent.
      const calls = Math.ceil(gates / REPORTS_AT_ONCE);
      for (let call = 0; call < calls; call++) {
        const [closed, opened]: [WorkerReport[], WorkerReport[]] = [[], []];
        for (let n = call; n < gates; n += calls) {
          const gate = { kind: 'resource', name: resource(n) } as const;
          if (n < open) opened.push({ gate, report: failures(FAILURES_THAT_OPEN) });
          else closed.push({ gate, report: failures(1) });
        }
        await send(store, closed);
        await send(store, opened);
      }
    });
  }

  async claim(limit: number): Promise<number> {
    const { tookMs, jobs } = await claimKept(this.#store, limit);
    const open = jobs.find(({ resource }) => resource?.startsWith(OPEN_HOST));
    if (open !== undefined) throw new Error(`wrong: a claim took a job of ${open.resource}, whose gate is open`);
    return tookMs;
  }

  async pruneAll(): Promise<number> {
    const retention = { completedMs: 0, deadMs: 0, cancelledMs: 0 };
    let last = '';
    for (let calls = 1, idle = 0; ; calls++) {
      const { isDone } = await pruneWith(this.#store, retention, PRUNED_AT_ONCE);
      if (!isDone) continue;
      const rows = JSON.stringify(await this.rows());
      idle = rows === last ? idle + 1 : 0;
      last = rows;
      if (idle >= IDLE_CALLS) return calls - idle;
    }
  }

  rows(): Promise<Readonly<Record<string, number>>> {
    return this.#place.rows(TABLES);
  }
}

/** Throws unless exactly those gates have opened of which enough failures are reported. */
async function send(store: Store, reports: readonly WorkerReport[]): Promise<void> {
  const answers = await store.report(reports);
  const wanted = reports.filter(({ report }) => report?.environment === FAILURES_THAT_OPEN).length;
  const open = answers.filter(({ gate, state }) => gate.kind === 'resource' && state.phase === 'open').length;
  if (open !== wanted) throw new Error(`wrong: ${open} of ${reports.length} gates are open, not ${wanted}`);
}

/** One worker's report on so many runs that were refused, of different jobs. */
function failures(count: number): GateReport {
  const error = { name: 'Error', message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' };
  const failure = {
    error: error as never,
    class: 'environment',
    rule: 'code:ECONNREFUSED',
    retryAfterMs: null,
    customDelayMs: null,
    note: null,
  } as const;
  const runs = Array.from({ length: count }, () => ({
    jobId: systemClock.newId(),
    outcome: { kind: 'failed', failure } as const,
    epoch: 0,
    claimedAt: Date.now(),
    durationMs: 1,
    isFirstAttempt: true,
    isRetry: false,
  }));
  return foldRuns('bench-worker', runs, 1)[0] as GateReport;
}
