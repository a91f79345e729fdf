import type { VNode } from 'preact';
import type { Operation } from '../client/answers.ts';
import { call } from '../client/request.ts';
import { Action } from './action.tsx';
import { count, number } from './format.ts';
import { Mark } from './state.tsx';
import { type Column, Table } from './table.tsx';
import { Ago, useNow } from './time.tsx';

/** One that has made no progress for so long may have lost its process. */
const SILENT_MS = 15_000;

interface OperationsProps {
  readonly operations: readonly Operation[];
  readonly reload: () => void;
}

/** What operators ordered, and how far it is. */
export function Operations({ operations, reload }: OperationsProps): VNode {
  const now = useNow();
  const stop = async (id: string): Promise<string> => {
    await call('stopOperation', { params: { id }, body: {} });
    reload();
    return 'It was stopped. What it has changed stays so.';
  };
  const resume = async (id: string): Promise<string> => {
    await call('resumeOperation', { params: { id }, body: {} });
    reload();
    return 'It goes on.';
  };
  const columns: readonly Column<Operation>[] = [
    { title: 'When', kind: 'tight', cell: ({ startedAt }) => <Ago at={startedAt} /> },
    { title: 'What', kind: 'tight', cell: ({ action }) => actionWords[action] ?? action },
    { title: 'State', kind: 'tight', cell: (operation) => <OperationMark operation={operation} /> },
    { title: 'Details', kind: 'main', cell: details },
    { title: 'Who', cell: ({ by }) => <bdi>{by}</bdi> },
    {
      title: 'Do',
      kind: 'tight',
      cell: ({ id, state, action, updatedAt }) => {
        if (!(action in bulkWords)) return null;
        const isSilent = state === 'running' && now - updatedAt > SILENT_MS;
        return (
          <div class="actions">
            {state === 'running' && (
              <Action isSmall act={() => stop(id)}>
                Stop
              </Action>
            )}
            {(state === 'stopped' || isSilent) && (
              <Action isSmall act={() => resume(id)}>
                Resume
              </Action>
            )}
          </div>
        );
      },
    },
  ];
  return <Table caption="Operations" columns={columns} rows={operations} rowKey={({ id }) => id} />;
}

const bulkWords = { redrive: 'Redrive', runNow: 'Run now', discard: 'Discard', cancel: 'Cancel' } as const;
const actionWords: Readonly<Record<Operation['action'], string>> = {
  ...bulkWords,
  pause: 'Pause',
  resume: 'Resume',
  limit: 'Limit',
  schedule: 'Schedule',
  gate: 'Gate',
  reveal: 'Reveal',
  retention: 'Retention',
};

export function isBulk({ action }: Operation): boolean {
  return action in bulkWords;
}

function OperationMark({ operation: { state } }: { readonly operation: Operation }): VNode {
  if (state === 'running') return <Mark icon="running" tone="accent" children="running" />;
  if (state === 'stopped') return <Mark icon="paused" tone="warn" children="stopped" />;
  return <Mark icon="completed" tone="good" children="done" />;
}

function details(operation: Operation): VNode {
  const { changed, skipped, note, options, canary, state } = operation;
  const isWatching = state === 'running' && canary.length > 0 && changed <= canary.length;
  const parts = [
    ...(isBulk(operation) ? [`${count(changed, 'job')} changed`] : []),
    ...(skipped > 0 ? [`${number(skipped)} skipped`] : []),
    ...(isWatching ? [`waiting for ${count(canary.length, 'canary', 'canaries')}`] : []),
    ...(options?.canary ? [`canary of ${options.canary}`] : []),
    ...(options?.rate ? [`at ${options.rate}`] : []),
  ];
  return (
    <>
      {parts.length > 0 && <div>{parts.join(', ')}</div>}
      {isBulk(operation) && (
        <div class="muted">
          <bdi>{selectionWords(operation)}</bdi>
        </div>
      )}
      {note !== null && (
        <div class={state === 'stopped' ? '' : 'muted'}>
          <bdi>{note}</bdi>
        </div>
      )}
    </>
  );
}

/** Which jobs it is about, as they were named. */
function selectionWords({ selection }: Operation): string {
  return Object.entries(selection)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => {
      if (key === 'ids')
        return (value as string[]).length === 1 ? `id ${(value as string[])[0]}` : `${(value as string[]).length} ids`;
      if (key === 'since' || key === 'until') return `${key} ${new Date(value as number).toISOString()}`;
      return `${key} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`;
    })
    .join(', ');
}
