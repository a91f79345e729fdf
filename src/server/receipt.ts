import { z } from 'zod';
import type { ClaimedJob, Refund } from '../store/store.ts';
import { ProblemError } from './problem.ts';

/*
 * The `lease` that a claim gives a remote worker, and that the worker sends back with heartbeats and with the outcome. It
 * holds what `decide` looks at: so the server keeps nothing between two requests, any server of the same store can settle
 * any job, and a server that is killed loses none.
 *
 * It is not signed. A client that may settle (scope `work`) may do so with any decision through the store verbs; what keeps a
 * late or a wrong settlement out is the fence in the store, and that compares job, run and worker with the row.
 */
export interface Receipt {
  /** As it was claimed, without its payload, but for attempts that were given back before the start. */
  readonly job: Omit<ClaimedJob, 'payload'>;
  readonly leaseMs: number;
  readonly refund?: Refund;
}

const VERSION = 'r1';
const LONGEST = 64 * 1_024;

export function writeReceipt({ job, leaseMs, refund }: Receipt): string {
  const { payload: _, lastError, ...kept } = job as ClaimedJob;
  // Of the last error, only the group is needed to settle.
  const error = lastError && { ...lastError, message: '', stack: null, issues: undefined };
  const data = { job: { ...kept, lastError: error }, leaseMs, ...(refund && { refund }) };
  return `${VERSION}.${Buffer.from(JSON.stringify(data)).toString('base64url')}`;
}

export function readReceipt(text: string, shape: z.ZodType<Receipt>): Receipt {
  const [version, data = ''] = text.length > LONGEST ? [] : text.split('.');
  if (version === VERSION) {
    const read = shape.safeParse(parse(Buffer.from(data, 'base64url').toString('utf8')));
    if (read.success) return read.data;
  }
  throw new ProblemError(400, 'BAD_REQUEST', 'Expected the lease that the claim answered, got something else.');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const receiptText: z.ZodType<string> = z.string().max(LONGEST).describe('The lease that the claim answered.');
