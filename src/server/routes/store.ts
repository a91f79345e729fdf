import { z } from 'zod';
import type { RunLog } from '../../run-log.ts';
import { ABOUT, HINTS, STORE_PATH } from '../../store/http/verbs.ts';
import { encode } from '../../store/http/wire.ts';
import type { EndedJob, LimitInfo, LimitKeyInfo, Schedule, Schedules, Store } from '../../store/store.ts';
import { type RemoteVerb, remoteVerbs, verbs } from '../../store/verbs.ts';
import { packageVersion } from '../../version.ts';
import { answerBytes } from '../answer-bytes.ts';
import { eventStream } from '../event-stream.ts';
import { type Call, type Route, route } from '../route.ts';
import { seesPayloads } from '../security/scopes.ts';
import { checkSizes } from '../sizes.ts';
import { isOnlyProducer, permitted, withoutUse } from '../store-rights.ts';
import { storeArguments } from '../store-verbs.ts';
import { shownJob, shownLog } from './job-lists.ts';

/* The store contract over HTTP, for `Mulligan.open('https://...')`. */

const TAG = 'store';
/** A batch of 8 MiB of payloads, as JSON text inside of JSON, which doubles quotes; and what goes with 1,000 jobs. */
const LARGEST_BODY = 24 * 1_048_576;

type Args = readonly unknown[];

function verbRoute(verb: RemoteVerb): Route {
  return route({
    method: 'POST',
    path: `${STORE_PATH}/${verb}`,
    name: `store${verb.charAt(0).toUpperCase()}${verb.slice(1)}`,
    tag: TAG,
    summary: `The store verb ${verb}`,
    description: 'For remote stores of the same version. The body is the list of its arguments.',
    scopes: verbs[verb].scopes,
    body: storeArguments[verb] as z.ZodType<Args>,
    isTagged: true,
    maxBodyBytes: LARGEST_BODY,
    answerBytes: answerBytes(verb),
    answers: { 200: { description: 'What the store answers.' } },
    async handle(call) {
      checkSizes(verb, call.body, call.context);
      const given = await permitted(verb, call);
      const answer = 'answer' in given ? given.answer : await carryOut(call.context.store, verb, given.args);
      return { json: encode(shown(verb, answer, call)) ?? 'null' };
    },
  });
}

function carryOut(store: Store, verb: RemoteVerb, args: Args): Promise<unknown> {
  return (store[verb] as (...all: Args) => Promise<unknown>)(...args);
}

/** Those that only read get payloads redacted, here as everywhere. */
function shown(verb: RemoteVerb, answer: unknown, { principal, context }: Call): unknown {
  if (seesPayloads(principal)) return answer;
  switch (verb) {
    case 'limits':
    case 'limitKeys':
      return isOnlyProducer(principal) ? (answer as (LimitInfo | LimitKeyInfo)[]).map(withoutUse) : answer;
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
  description:
    '`work`: something may have become claimable. `ended`, `cancelling`: the ids of such jobs, for those that may read or work. `missed`: it may have failed to tell some.',
  scopes: ['read', 'write', 'work'],
  answers: { 200: { description: 'A stream without end.', type: 'text/event-stream' } },
  handle: ({ request, principal, context: { clock, store, closing } }) =>
    eventStream({
      clock,
      signals: [request.signal, closing],
      subscribe(send) {
        const unsubscribes = [store.onWork(() => send({ event: 'work', data: [] }))];
        const ofJobs = {
          ended: (ids: readonly string[]) => send({ event: 'ended', data: ids }),
          cancelling: (ids: readonly string[]) => send({ event: 'cancelling', data: ids }),
          missed: () => send({ event: 'missed', data: [] }),
        };
        if (!isOnlyProducer(principal)) unsubscribes.push(store.onJobs(ofJobs));
        return () => {
          for (const unsubscribe of unsubscribes) unsubscribe();
        };
      },
    }),
});

export const storeRoutes: readonly Route[] = [...remoteVerbs.map(verbRoute), about, hints];
