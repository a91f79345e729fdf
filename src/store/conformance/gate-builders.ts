import assert from 'node:assert/strict';
import { type EndedRun, foldRuns, formatGate, type GateState } from '../../gate/index.ts';
import type { Outcome } from '../../retry/outcome.ts';
import type { ClaimedJob, GateAnswer, GatedClaim, GatedClaimRequest, GateKind, GateRef, Store } from '../store.ts';
import {
  claim,
  claimRequest,
  complete,
  die,
  giveBack,
  HOUR,
  MINUTE,
  newJobs,
  only,
  redrive,
  retryIn,
  settlement,
  settleOne,
  timeOf,
} from './builders.ts';
import type { StoreHarness } from './suite.ts';

/** A gate of a resource, unless another kind is asked for. */
export function gateOf(name: string, kind: GateKind = 'resource'): GateRef {
  return { kind, name };
}

export const completed: Outcome = { kind: 'completed' };
export const handedBack: Outcome = {
  kind: 'released',
  because: { kind: 'no-handler', known: null, giveUpAfterMs: HOUR },
};
export const refused: Outcome = failedBy('net:ECONNREFUSED', null, null);

/** Status 429 with a wait that was asked for. */
export function throttled(retryAfterMs: number): Outcome {
  return failedBy('http:429', 429, retryAfterMs);
}

function failedBy(rule: string, status: number | null, retryAfterMs: number | null): Outcome {
  const error = { name: 'Error', message: 'no luck', code: null, status, stack: null };
  const failure = { error, class: 'environment', rule, retryAfterMs, customDelayMs: null, note: null } as const;
  return { kind: 'failed', failure };
}

/** A run of a claimed job, as its worker reports it. */
export function runOf(job: ClaimedJob, outcome: Outcome): EndedRun {
  return {
    jobId: job.id,
    outcome,
    epoch: job.gateEpoch,
    claimedAt: job.claimedAt,
    durationMs: 5,
    isFirstAttempt: job.attempts === 1,
    isRetry: job.lane === 'retry',
  };
}

/** Runs of jobs that this store need not know. */
export async function runsOf(
  store: Store,
  count: number,
  outcome: Outcome,
  changes: Partial<EndedRun> = {},
): Promise<EndedRun[]> {
  const claimedAt = await timeOf(store);
  const common = { outcome, epoch: 0, claimedAt, durationMs: 5, isFirstAttempt: true, isRetry: false };
  return Array.from({ length: count }, (_, index) => ({ jobId: `job ${index}`, ...common, ...changes }));
}

/** Sends what one worker saw in one epoch. */
export async function report(
  store: Store,
  gate: GateRef,
  runs: readonly EndedRun[],
  worker = 'worker-1',
): Promise<GateAnswer> {
  const answers = await store.report(foldRuns(worker, runs, 0).map((one) => ({ gate, report: one })));
  // After it come the parents that this changed.
  return only(answers.filter((answer) => answer.gate.kind === gate.kind));
}

export async function ask(store: Store, gate: GateRef): Promise<GateAnswer> {
  return only(await store.report([{ gate, report: null }]));
}

/** Enough failures of enough jobs for the fast rule. */
export async function trip(store: Store, resource: string): Promise<GateAnswer> {
  const answer = await report(store, gateOf(resource), await runsOf(store, 12, refused));
  assert.equal(answer.state.phase, 'open');
  return answer;
}

export function claimGated(
  store: Store,
  resource: string,
  changes: Partial<GatedClaimRequest> = {},
): Promise<GatedClaim> {
  return store.claimGated({ ...claimRequest(), resource, ...changes });
}

/** An open gate's probe, which is due by then. */
export async function claimProbe(
  { store, advance }: StoreHarness,
  resource: string,
  changes: Partial<GatedClaimRequest> = {},
): Promise<ClaimedJob> {
  await advance(MINUTE);
  return only((await claimGated(store, resource, changes)).jobs);
}

/** Three probes that complete: the gate is in its ramp then. Three jobs must be due. */
export async function recover(harness: StoreHarness, resource: string): Promise<GateAnswer> {
  const { store } = harness;
  let answer: GateAnswer | undefined;
  for (let probes = 0; probes < 3; probes++) {
    const job = await claimProbe(harness, resource);
    await settleOne(store, job, complete);
    answer = await report(store, gateOf(resource), [runOf(job, completed)]);
  }
  assert.equal(answer?.state.phase, 'ramp');
  return answer as GateAnswer;
}

/** Due jobs behind a gate that is closed. Call it while no fresh job waits in that queue. */
export async function enqueueBehind(
  store: Store,
  resource: string,
  lane: 'fresh' | 'retry' | 'redrive' | 'suspect',
  count: number,
): Promise<string[]> {
  const jobs = newJobs(count, { resource });
  await store.enqueue(jobs);
  const ids = jobs.map(({ id }) => id);
  if (lane === 'fresh') return ids;
  const claimed = (await claim(store, { limit: count })).jobs;
  assert.equal(claimed.length, count);
  const decision = lane === 'redrive' ? die() : retryIn(0, lane);
  await store.settle(claimed.map((job) => settlement(job, decision)));
  if (lane === 'redrive') await redrive(store, { ids });
  return ids;
}

/** Spends so much of the retry budget that it takes 11 s until it pays for the next retry. */
export async function spendBudget(store: Store, resource: string): Promise<GateAnswer> {
  return report(store, gateOf(resource), await runsOf(store, 20, completed, { isFirstAttempt: false, isRetry: true }));
}

/** Hands a probe back with an environment failure, as a worker does. */
export async function failProbe(store: Store, resource: string, job: ClaimedJob): Promise<GateAnswer> {
  const answer = await report(store, gateOf(resource), [runOf(job, refused)]);
  await settleOne(store, job, giveBack('defer'));
  return answer;
}

/** A state as a store keeps it. */
export function kept(state: GateState | undefined): unknown {
  assert.ok(state !== undefined);
  return JSON.parse(formatGate(state));
}
