import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { RunLog } from '../../run-log.ts';
import { ABOUT, HINTS, type RemoteVerb, STORE_PATH } from '../../store/http/verbs.ts';
import { encode } from '../../store/http/wire.ts';
import type { EndedJob, LimitWrite, Retention, Schedule, Schedules, ScheduleWrite, Store } from '../../store/store.ts';
import { packageVersion } from '../../version.ts';
import { answerBytes } from '../answer-bytes.ts';
import { eventStream } from '../event-stream.ts';
import { ProblemError } from '../problem.ts';
import { type Call, type Route, route } from '../route.ts';
import { isAllowed, type Principal, seesPayloads } from '../security/scopes.ts';
import { checkSizes } from '../sizes.ts';
import { storeVerbs } from '../store-verbs.ts';
import { shownJob, shownLog } from './job-lists.ts';

/* The store contract over HTTP, for `Mulligan.open('https://...')`. */

const TAG = 'store';
/** A batch of 8 MiB of payloads, as JSON text inside of JSON, which doubles quotes; and what goes with 1,000 jobs. */
const LARGEST_BODY = 24 * 1_048_576;

type Args = readonly unknown[];

function verbRoute(verb: RemoteVerb): Route {
  const { args, scopes } = storeVerbs[verb];
  return route({
    method: 'POST',
    path: `${STORE_PATH}/${verb}`,
    name: `store${verb.charAt(0).toUpperCase()}${verb.slice(1)}`,
    tag: TAG,
    summary: `The store verb ${verb}`,
    description: 'For remote stores of the same version. The body is the list of its arguments.',
    scopes,
    body: args as z.ZodType<Args>,
    isTagged: true,
    maxBodyBytes: LARGEST_BODY,
    answerBytes: answerBytes[verb] ?? 0,
    answers: { 200: { description: 'What the store answers.' } },
    async handle(call) {
      const given = await permitted(verb, call);
      const answer = await (call.context.store[verb] as (...all: Args) => Promise<unknown>)(...given);
      return { json: encode(shown(verb, answer, call)) ?? 'null' };
    },
  });
}

/** What a verb may be called with by this caller. */
async function permitted(
  verb: RemoteVerb,
  { body, principal, by, context }: Call<unknown, unknown, Args>,
): Promise<Args> {
  checkSizes(verb, body, context);
  const isAdmin = isAllowed(principal, []);
  switch (verb) {
    case 'writeLimits':
      if (!isAdmin && (body[0] as LimitWrite[]).some(({ source }) => source === 'set')) throw needsAdmin('limits');
      return body;
    case 'writeSchedule':
      if (!isAdmin && !(await isOfWorker(context.store, body[0] as ScheduleWrite))) throw needsAdmin('schedules');
      return body;
    case 'prune':
      return isAdmin ? body : [longest(body[0] as Retention, context.retention), ...body.slice(1)];
    case 'change': {
      const [request] = body as Parameters<Store['change']>;
      return [{ ...request, by: signed(request.by, by, principal) }];
    }
    case 'changeGate': {
      const [gate, order, operator] = body as Parameters<Store['changeGate']>;
      return [gate, order, signed(operator, by, principal)];
    }
    default:
      return body;
  }
}

function needsAdmin(what: string): ProblemError {
  return new ProblemError(403, 'FORBIDDEN', `Expected a token with the scope admin to change ${what} by hand.`);
}

/** Whether a worker writes a schedule: it fires a tick, or its application gives the schedule in code. */
async function isOfWorker(store: Store, { name, to }: ScheduleWrite): Promise<boolean> {
  if (to === null) return false;
  const [before] = (await store.schedules({ names: [name], limit: 1 })).schedules;
  if (to.code !== null && to.code !== before?.code) return true;
  return before !== undefined && isDeepStrictEqual(rule(before), rule(to));
}

/** What a tick leaves as it is. A property that is undefined does not survive the way. */
function rule({ version: _, nextAt: __, lastAt: ___, ...kept }: Schedule): unknown {
  return JSON.parse(JSON.stringify(kept));
}

/** A worker elsewhere cannot shorten what this server keeps. */
function longest(asked: Retention, kept: Retention): Retention {
  const longer = (a: number | null, b: number | null): number | null =>
    a === null || b === null ? null : Math.max(a, b);
  return {
    ...asked,
    completedMs: longer(asked.completedMs, kept.completedMs),
    deadMs: longer(asked.deadMs, kept.deadMs),
    cancelledMs: longer(asked.cancelledMs, kept.cancelledMs),
  };
}

const LONGEST_OPERATOR = 200;

/** Who says to be the operator, and whose token it was. A program on this machine is believed. */
function signed(operator: string, by: string, { isLocal }: Principal): string {
  return isLocal ? operator : `${by}: ${operator}`.slice(0, LONGEST_OPERATOR).toWellFormed();
}

/** Those that only read get payloads redacted, here as everywhere. */
function shown(verb: RemoteVerb, answer: unknown, { principal, context }: Call): unknown {
  if (seesPayloads(principal)) return answer;
  switch (verb) {
    case 'get':
    case 'list': {
      const list = answer as Awaited<ReturnType<Store['list']>>;
      const { stoppedAfter } = list;
      const copies = list.map((job) => shownJob(job, context));
      return stoppedAfter === undefined ? copies : Object.assign(copies, { stoppedAfter });
    }
    case 'schedules': {
      const { now, schedules } = answer as Schedules;
      const hidden = ({ job }: Schedule): Schedule['job'] => ({
        ...job,
        payload: redactText(job.payload, context.redact) as string,
      });
      return { now, schedules: schedules.map((one) => ({ ...one, job: hidden(one) })) };
    }
    case 'logs':
      return (answer as RunLog[]).map((log) => shownLog(log, context));
    case 'ended':
      return (answer as EndedJob[]).map((job) => ({ ...job, result: redactText(job.result, context.redact) }));
    default:
      return answer;
  }
}

/** A result is JSON text, or says why there is none. */
function redactText(text: string | null, redact: (value: unknown) => unknown): string | null {
  try {
    return text === null ? null : JSON.stringify(redact(JSON.parse(text)));
  } catch {
    return text;
  }
}

const about: Route = route({
  method: 'GET',
  path: `${STORE_PATH}/${ABOUT}`,
  name: 'storeAbout',
  tag: TAG,
  summary: 'What store this is',
  scopes: ['read', 'write', 'work'],
  answers: {
    200: {
      description: 'Its kind, and whether it tells of what other processes do.',
      schema: z.object({ kind: z.string(), pushes: z.boolean(), version: z.string() }),
    },
  },
  handle: ({ context: { store } }) => ({
    body: { kind: store.kind, pushes: store.pushes, version: packageVersion() },
  }),
});

const hints: Route = route({
  method: 'GET',
  path: `${STORE_PATH}/${HINTS}`,
  name: 'storeHints',
  tag: TAG,
  summary: 'What the store tells its listeners, as Server-Sent Events',
  description: '`work`: something may have become claimable. `ended`, `cancelling`: the ids of such jobs.',
  scopes: ['read', 'write', 'work'],
  answers: { 200: { description: 'A stream without end.', type: 'text/event-stream' } },
  handle: ({ request, context: { clock, store, closing } }) =>
    eventStream({
      clock,
      signals: [request.signal, closing],
      subscribe(send) {
        const unsubscribes = [
          store.onWork(() => send({ event: 'work', data: [] })),
          store.onJobs({
            ended: (ids) => send({ event: 'ended', data: ids }),
            cancelling: (ids) => send({ event: 'cancelling', data: ids }),
          }),
        ];
        return () => {
          for (const unsubscribe of unsubscribes) unsubscribe();
        };
      },
    }),
});

export const storeRoutes: readonly Route[] = [
  ...(Object.keys(storeVerbs) as RemoteVerb[]).map(verbRoute),
  about,
  hints,
];
