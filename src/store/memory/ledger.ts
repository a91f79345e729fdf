import {
  DRAWN_TOGETHER,
  drawParts,
  type LedgerJob,
  type LedgerPage,
  type LedgerRequest,
  type LedgerState,
  nextPosition,
  PolicyList,
  positionAfter,
} from '../ledger.ts';
import type { Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function ledger(state: MemoryState, request: LedgerRequest, now: number): LedgerPage {
  const ended = [...state.rows.values()].filter(({ state }) => state === 'completed' || state === 'dead');
  return request.draw === undefined ? inOrder(ended, request, now) : drawn(ended, request, request.draw, now);
}

function inOrder(ended: readonly Row[], request: LedgerRequest, now: number): LedgerPage {
  const from = positionAfter(request);
  if (from === null) return toPage([], request, now, null);
  const endOf = (row: Row): number => row.finishedAt ?? 0;
  const looked = ended
    .filter((row) => row.state === from.state)
    .filter((row) => endOf(row) > from.finishedAt || (endOf(row) === from.finishedAt && row.accepted > from.accepted))
    .sort((a, b) => endOf(a) - endOf(b) || a.accepted - b.accepted)
    .slice(0, request.limit);
  const last = looked.at(-1);
  const position = last && { finishedAt: endOf(last), accepted: last.accepted };
  const rows = looked.map((row) => ({ row, part: null }));
  return toPage(rows, request, now, nextPosition(request, from.state, looked.length, position));
}

function drawn(ended: readonly Row[], request: LedgerRequest, draw: number, now: number): LedgerPage {
  const { until = Number.POSITIVE_INFINITY } = request;
  const parts = Math.ceil(request.limit / DRAWN_TOGETHER);
  const rows = drawParts(draw, parts, Math.ceil(ended.length / DRAWN_TOGETHER)).flatMap((part) =>
    ended
      .slice(part * DRAWN_TOGETHER, (part + 1) * DRAWN_TOGETHER)
      .filter(({ finishedAt }) => (finishedAt ?? 0) <= until)
      .map((row) => ({ row, part })),
  );
  return toPage(rows, request, now, null);
}

function toPage(
  rows: readonly { readonly row: Row; readonly part: number | null }[],
  { since, name }: LedgerRequest,
  now: number,
  next: string | null,
): LedgerPage {
  const policies = new PolicyList();
  const errors: Record<string, NonNullable<Row['lastError']>> = {};
  const jobs = rows
    .filter(({ row }) => (row.finishedAt ?? 0) >= since && (name === undefined || row.name === name))
    .map(({ row, part }): LedgerJob => {
      for (const { error } of row.ledger) {
        if (error?.fingerprint !== undefined) errors[error.fingerprint] ??= { ...error, stack: null };
      }
      return {
        id: row.id,
        name: row.name,
        state: row.state as LedgerState,
        deadReason: row.deadReason,
        resource: row.resource,
        finishedAt: row.finishedAt ?? 0,
        policy: policies.indexOf(row.policy),
        part,
        runs: row.ledger.map(({ run, attempt, outcome, counted, startedAt, endedAt, decision, error }) => {
          const fingerprint = error?.fingerprint ?? null;
          return { run, attempt, outcome, counted, startedAt, endedAt, decision, fingerprint };
        }),
      };
    });
  return { now, jobs, looked: rows.length, policies: policies.policies, errors, next };
}
