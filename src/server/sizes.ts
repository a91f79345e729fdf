import { byteLength } from '../bytes.ts';
import { PayloadError } from '../errors.ts';
import type { Heartbeat, NewJob, Reaction, ScheduleWrite, Settlement } from '../store/store.ts';
import type { RemoteVerb } from '../store/verbs.ts';
import type { ServerContext } from './route.ts';

/** As `progress` of a worker bounds it. */
const MAX_PROGRESS_BYTES = 16 * 1_024;

type Limits = Pick<ServerContext, 'maxPayloadBytes' | 'maxResultBytes'>;

/** Data that a remote store sends is bounded as the data of a call to this server is. */
export function checkSizes(
  verb: RemoteVerb,
  args: readonly unknown[],
  { maxPayloadBytes, maxResultBytes }: Limits,
): void {
  const payload = (text: string | undefined, what: string): void => check(text, maxPayloadBytes, what, PAYLOAD_ADVICE);
  switch (verb) {
    case 'enqueue':
      for (const [at, job] of (args[0] as NewJob[]).entries()) {
        for (const text of payloadsOf(job)) payload(text, `enqueue: jobs[${at}].payload`);
      }
      return;
    case 'writeSchedule': {
      const { to, jobs } = args[0] as ScheduleWrite;
      payload(to?.job.payload, 'writeSchedule: payload');
      for (const [at, job] of jobs.entries()) payload(job.payload, `writeSchedule: jobs[${at}].payload`);
      return;
    }
    case 'change':
      payload((args[0] as { payload?: string }).payload, 'change: payload');
      return;
    case 'remember':
      payload(args[2] as string, 'remember: value');
      return;
    case 'heartbeat':
      for (const { progress } of args[0] as Heartbeat[]) check(progress, MAX_PROGRESS_BYTES, 'heartbeat: progress');
      return;
    case 'settle':
      for (const { result, progress } of args[0] as Settlement[]) {
        check(result, maxResultBytes, 'settle: result', RESULT_ADVICE);
        check(progress, MAX_PROGRESS_BYTES, 'settle: progress');
      }
  }
}

/** Its own, and those of the jobs that its death would enqueue. */
function payloadsOf({ payload, onDead }: Reaction): string[] {
  return onDead === undefined ? [payload] : [payload, ...payloadsOf(onDead)];
}

const PAYLOAD_ADVICE = ' Store the data elsewhere, or raise maxPayloadBytes of the server.';
const RESULT_ADVICE = ' Store the data elsewhere, or raise maxResultBytes of the server.';

function check(text: string | undefined, maxBytes: number, what: string, advice = ''): void {
  // No character takes more than three bytes.
  if (text === undefined || 3 * text.length <= maxBytes) return;
  const bytes = byteLength(text);
  if (bytes > maxBytes)
    throw new PayloadError(`${what}: expected at most ${maxBytes} bytes of JSON, got ${bytes}.${advice}`);
}
