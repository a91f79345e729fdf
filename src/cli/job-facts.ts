import { systemClock } from '../clock.ts';
import type { Job } from '../job.ts';
import type { LimitKey } from '../limit/limit.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { traceIdOf } from '../observe/tracing.ts';
import { printable, printableJson } from '../printable.ts';
import { gateText, isNotable } from './gate-facts.ts';
import { errorText } from './ledger.ts';
import type { Output } from './output.ts';
import { policySummary } from './policy/words.ts';
import { factLines } from './table.ts';
import { pointInTime } from './time.ts';

const LONGEST_PAYLOAD = 2_000;

/** Everything worth knowing about one job, but its ledger. `gate`: of a job that has not ended. */
export function jobFacts(job: Job, gate: GateInfo | null, output: Output): string[] {
  const now = systemClock.now();
  const time = (at: number | null): string | null => (at === null ? null : pointInTime(at, now));
  const facts: [string, string | null][] = [
    ['id', job.id],
    ['name', job.name],
    ['version', job.version === null ? null : String(job.version)],
    ['queue', `${job.queue}, priority ${job.priority}, ${job.lane} lane`],
    ['state', stateText(job)],
    [
      'attempts',
      `${job.attempts} of ${job.policy.maxAttempts} (${job.runs} ${job.runs === 1 ? 'run' : 'runs'}, ${job.crashes} crashed)`,
    ],
    ['policy', policySummary(job.policy)],
    ['key', job.key],
    ['tags', job.tags.length === 0 ? null : job.tags.join(', ')],
    ['trace', job.trace === null ? null : traceIdOf(job.trace)],
    ['resource', job.resource],
    ['limits', job.limits.length === 0 ? null : job.limits.map(limitText).join(', ')],
    ['gate', gate === null || !isNotable(gate) ? null : gateText(gate)],
    ['input', cut(printableJson(job.payload), output)],
    ['progress', job.progress === null ? null : cut(printableJson(job.progress), output)],
    ['result', resultText(job, output)],
    ['enqueued', time(job.enqueuedAt)],
    ['first run', time(job.firstStartedAt)],
    ['due', job.finishedAt === null && job.state !== 'running' ? time(job.dueAt) : null],
    ['running on', job.worker],
    ['lease ends', time(job.leaseEndsAt)],
    ['finished', time(job.finishedAt)],
    ['last error', job.lastError === null ? null : errorText(job.lastError)],
    ['error group', job.lastError?.fingerprint ?? null],
  ];
  return factLines(
    facts.filter((fact): fact is [string, string] => fact[1] !== null),
    output,
  );
}

/** The stack of the last error, when there is one. */
export function stackLines({ lastError }: Job, output: Output): string[] {
  if (!lastError?.stack) return [];
  const frames = lastError.stack.split('\n').map((line) => `  ${printable(line.trim())}`);
  return ['', output.paint('dim', 'stack of the last error'), ...frames];
}

function limitText({ limit, key }: LimitKey): string {
  return key === '' ? limit : `${limit} (key ${key})`;
}

function resultText({ result, resultError }: Job, output: Output): string | null {
  if (resultError !== null) return `not stored: ${printable(resultError)}`;
  return result === null ? null : cut(printableJson(result), output);
}

function stateText({ state, deadReason, cancelRequested }: Job): string {
  const reason = deadReason === null ? '' : `: ${deadReason}`;
  return `${state}${reason}${cancelRequested && state === 'running' ? ', to be cancelled' : ''}`;
}

function cut(json: string, output: Output): string {
  if (json.length <= LONGEST_PAYLOAD || output.columns === Number.POSITIVE_INFINITY) return json;
  return `${json.slice(0, LONGEST_PAYLOAD).toWellFormed()}... (${json.length} characters; --json prints them all)`;
}
