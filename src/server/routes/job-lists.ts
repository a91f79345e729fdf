import { z } from 'zod';
import type { Selection } from '../../bulk/selection.ts';
import { type Job, states } from '../../job.ts';
import { deadReasons } from '../../retry/decision.ts';
import type { RunLog } from '../../run-log.ts';
import { PAGE_BYTES } from '../../store/page.ts';
import { PAGE_IN_MEMORY } from '../budget.ts';
import { type Call, type Route, route, type ServerContext } from '../route.ts';
import * as schemas from '../schemas.ts';

/* Lists and counts of jobs, by the one selection. */

const TAG = 'jobs';

const commaSeparated = <Member extends string>(members: readonly [Member, ...Member[]]): z.ZodType<Member[]> =>
  z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(members)).min(1)) as unknown as z.ZodType<Member[]>;

/** The one selection, as query parameters. */
const selectionQuery = {
  name: schemas.jobName.exactOptional(),
  queue: schemas.jobName.exactOptional(),
  state: commaSeparated(states as unknown as [string, ...string[]])
    .exactOptional()
    .describe(`One or more of ${states.join(', ')}, separated by commas.`),
  reason: z.enum(deadReasons).exactOptional(),
  error: schemas.jobName.exactOptional().describe('The fingerprint of the last error, or the start of it.'),
  message: schemas.jobName.exactOptional().describe('Part of the message of the last error.'),
  tag: schemas.jobName.exactOptional(),
  key: schemas.jobName.exactOptional(),
  since: schemas.moment.exactOptional(),
  until: schemas.moment.exactOptional(),
  attempts: z.coerce
    .number()
    .int()
    .min(0)
    .max(schemas.LARGEST_COUNT)
    .exactOptional()
    .describe('At least so many attempts were spent.'),
};
type SelectionQuery = Omit<Selection, 'limit' | 'ids'>;

const countSchema: z.ZodType<SelectionQuery & { readonly limit?: number }> = z.strictObject({
  ...selectionQuery,
  limit: z.coerce.number().int().min(1).max(schemas.LARGEST_COUNT).exactOptional().describe('Stop counting there.'),
}) as unknown as z.ZodType<SelectionQuery & { readonly limit?: number }>;

type ListQuery = SelectionQuery & { readonly limit: number; readonly cursor?: string; readonly payload?: string };
export const listSchema: z.ZodType<ListQuery> = z.strictObject({
  ...selectionQuery,
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: schemas.jobId.exactOptional().describe('`next` of the page before.'),
  payload: schemas.jobName
    .exactOptional()
    .describe('Part of the payload, in upper or lower case. No index helps: a page looks at 2,000 jobs at most.'),
}) as unknown as z.ZodType<ListQuery>;

/** What callers see of a job. */
export function shownJob(job: Job, { redact }: Pick<ServerContext, 'redact'>): Job {
  return { ...job, payload: redact(job.payload), progress: redact(job.progress), result: redact(job.result) };
}

/** What callers see of a log. */
export function shownLog({ lines, ...log }: RunLog, { redact }: Pick<ServerContext, 'redact'>): RunLog {
  const shown = lines.map((line) => (line.fields === undefined ? line : { ...line, fields: redact(line.fields) }));
  return { ...log, lines: shown as RunLog['lines'] };
}

export async function listJobs(
  { query: { cursor, payload, ...filter }, context }: Call<unknown, ListQuery>,
  fixed: Selection = {},
): Promise<{ items: Job[]; next: string | null; lookedAt?: number }> {
  if (payload !== undefined) return searchPayloads(payload, { ...filter, ...fixed }, cursor, context);
  const after = cursor === undefined ? {} : { after: cursor };
  const page = await context.mulligan.jobs.list({ ...filter, ...fixed, ...after });
  const next = page.stoppedAfter ?? (page.length < filter.limit ? null : (page.at(-1)?.id ?? null));
  return { items: page.map((job) => shownJob(job, context)), next };
}

/** A search reads no more jobs than this before it answers; `next` continues it. */
const MOST_SEARCHED = 2_000;
const SEARCHED_AT_ONCE = 250;

/** Payloads are searched as they are shown: a search must not tell what is redacted. */
async function searchPayloads(
  text: string,
  { limit, ...filter }: Selection & { readonly limit: number },
  cursor: string | undefined,
  context: ServerContext,
): Promise<{ items: Job[]; next: string | null; lookedAt: number }> {
  const sought = text.toLowerCase();
  const items: Job[] = [];
  let [lookedAt, after] = [0, cursor];
  let carried = 0;
  while (lookedAt < MOST_SEARCHED) {
    const from = after === undefined ? {} : { after };
    const page = await context.mulligan.jobs.list({ ...filter, ...from, limit: SEARCHED_AT_ONCE });
    for (const job of page) {
      lookedAt++;
      after = job.id;
      const shown = shownJob(job, context);
      const text = JSON.stringify(shown.payload);
      if (text.toLowerCase().includes(sought)) {
        items.push(shown);
        carried += text.length;
      }
      if (items.length === limit || carried > PAGE_BYTES) return { items, next: job.id, lookedAt };
    }
    if (page.length < SEARCHED_AT_ONCE && page.stoppedAfter === undefined) return { items, next: null, lookedAt };
  }
  return { items, next: after ?? null, lookedAt };
}

const list: Route = route({
  method: 'GET',
  path: '/api/v1/jobs',
  name: 'listJobs',
  tag: TAG,
  summary: 'List jobs, newest first',
  scopes: ['read'],
  query: listSchema,
  answerBytes: PAGE_IN_MEMORY,
  answers: { 200: { description: 'A page of jobs.', schema: schemas.pageOf(schemas.job) } },
  handle: async (call) => ({ body: await listJobs(call) }),
});

const count: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/count',
  name: 'countJobs',
  tag: TAG,
  summary: 'Count jobs',
  scopes: ['read'],
  query: countSchema,
  answers: {
    200: { description: 'How many; no more than `limit`.', schema: z.object({ count: z.int(), isExact: z.boolean() }) },
  },
  handle: async ({ query, context }) => ({ body: await context.mulligan.jobs.count(query) }),
});

export const jobListRoutes: readonly Route[] = [list, count];
