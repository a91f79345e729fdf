import type { Job, RunRecord } from '../../src/job.ts';
import type { FinalState } from '../history.ts';
import type { Check } from './checker.ts';
import { checkGroupSizes } from './error-groups.ts';
import type { Model, ModelJob } from './model.ts';

/** Guarantees 1, 3 and 4, at the end: the store holds what the history says, no more and no less. */
export function checkFinal(model: Model, final: FinalState, ended: boolean, expect: Check['expect']): void {
  expect(10, ended, () => 'jobs still wait or run an hour after the faults were over');
  const stored = new Map(final.jobs.map((job) => [job.id, job]));
  for (const [id, job] of model.jobs) {
    const found = stored.get(id);
    if (found === undefined) expect(1, false, () => `${id} was accepted, and is gone`);
    else checkJob(job, found, final.ledgers.get(id) ?? [], ended, expect);
  }
  for (const id of stored.keys()) expect(1, model.jobs.has(id), () => `${id} is stored, but was never enqueued`);
  checkGroupSizes(final, expect);
}

function checkJob(
  job: ModelJob,
  found: Job,
  ledger: readonly RunRecord[],
  ended: boolean,
  expect: Check['expect'],
): void {
  const { id, policy } = job.made;
  const terminal = ['completed', 'dead', 'cancelled'].includes(found.state);
  expect(1, !ended || terminal, () => `${id} ended as ${found.state}`);
  if (terminal)
    expect(1, found.state === job.state, () => `${id} is ${found.state}, but the history says ${job.state}`);
  expect(
    4,
    found.attempts === job.attempts,
    () => `${id} has ${found.attempts} attempts, but the history says ${job.attempts}`,
  );
  expect(
    4,
    found.attempts <= policy.maxAttempts && found.attempts <= found.runs,
    () => `${id} has ${found.attempts} attempts in ${found.runs} runs, cap ${policy.maxAttempts}`,
  );
  expect(2, found.runs === job.runs, () => `${id} has ${found.runs} runs, but the history says ${job.runs}`);
  expect(
    6,
    found.crashes === job.crashes,
    () => `${id} has ${found.crashes} crashes, but the history says ${job.crashes}`,
  );
  expect(
    6,
    found.deadReason === job.deadReason,
    () => `${id} is dead for ${found.deadReason}, but the history says ${job.deadReason}`,
  );
  const recorded = ledger.map(
    ({ run, attempt, outcome, counted, worker }) => `${run} ${attempt} ${outcome} ${counted} ${worker}`,
  );
  const known = job.ledger.map(
    ({ run, attempt, outcome, counted, worker }) => `${run} ${attempt} ${outcome} ${counted} ${worker}`,
  );
  expect(
    3,
    recorded.join() === known.join(),
    () => `the ledger of ${id} says [${recorded}], but the history says [${known}]`,
  );
  for (const [index, { run }] of ledger.entries()) {
    expect(2, run === index + 1, () => `the ledger of ${id} has run ${run} at place ${index + 1}`);
  }
}
