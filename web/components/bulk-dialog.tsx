import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { linkTo } from '../app/router.ts';
import type { BulkResult } from '../client/answers.ts';
import { type ApiError, call } from '../client/request.ts';
import { asApiError } from '../client/use-data.ts';
import { Action } from './action.tsx';
import { Dialog } from './dialog.tsx';
import { cappedCount, count, short } from './format.ts';
import { Trouble } from './notice.tsx';
import { StateMark } from './state.tsx';
import { toast } from './toasts.tsx';

export type BulkAction = 'redrive' | 'runNow' | 'discard' | 'cancel';

/** The one selection, as the API takes it in a body. */
export type BulkSelection = Readonly<Record<string, string | number | readonly string[]>>;

const words: Readonly<Record<BulkAction, { title: string; verb: string; what: string; done: string }>> = {
  redrive: {
    title: 'Redrive dead jobs',
    verb: 'Redrive',
    what: 'They run again, with all their attempts, and keep their history.',
    done: 'The redrive has begun.',
  },
  runNow: {
    title: 'Run jobs now',
    verb: 'Run',
    what: 'Scheduled and retrying jobs become due now, running ones when their run ends with a wait; attempts and history stay.',
    done: 'The jobs are being made due.',
  },
  discard: {
    title: 'Discard dead jobs',
    verb: 'Discard',
    what: 'They are deleted for good, with their history. This cannot be undone.',
    done: 'The jobs are being deleted.',
  },
  cancel: {
    title: 'Cancel jobs',
    verb: 'Cancel',
    what: 'Waiting jobs end at once; running ones are told to stop.',
    done: 'The jobs are being cancelled.',
  },
};

const operations = {
  redrive: 'redriveDead',
  runNow: 'runJobsNow',
  discard: 'discardDead',
  cancel: 'cancelJobs',
} as const;

/** From so many jobs on, a canary is suggested. */
const CANARY_FROM = 20;
const SUGGESTED_CANARY = 5;

interface BulkDialogProps {
  readonly action: BulkAction;
  readonly selection: BulkSelection;
  /** Which jobs are meant, in words. */
  readonly which: string;
  readonly onClose: () => void;
  readonly onBegun: () => void;
}

/** First what would be changed: how many, and some of them. Then the options, and the order itself. */
export function BulkDialog({ action, selection, which, onClose, onBegun }: BulkDialogProps): VNode {
  const [preview, setPreview] = useState<BulkResult | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [canary, setCanary] = useState('');
  const [rate, setRate] = useState('');
  const [keepsAttempts, setKeepsAttempts] = useState(false);
  const asked = JSON.stringify(selection);
  // The selection is compared by its content.
  useEffect(() => {
    call(operations[action], { body: { ...selection, dryRun: true } as never }).then(
      (answer) => {
        setPreview(answer);
        if (action === 'redrive' && answer.count >= CANARY_FROM) setCanary(String(SUGGESTED_CANARY));
      },
      (failure: unknown) => setError(asApiError(failure)),
    );
  }, [action, asked]);

  const order = async (): Promise<void> => {
    await call(operations[action], {
      body: {
        ...selection,
        background: true,
        ...(action === 'redrive' && canary !== '' && { canary: Number(canary) }),
        ...(action === 'redrive' && keepsAttempts && { keepAttempts: true }),
        ...(rate !== '' && { rate: `${rate}/s` }),
      } as never,
    });
    toast(words[action].done);
    onBegun();
    onClose();
  };
  const { title, verb, what } = words[action];
  const isNone = preview?.count === 0;
  const total = preview === null ? '' : cappedCount(preview.count, preview.isExact);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      closeText="Leave it"
      actions={
        preview !== null &&
        !isNone && (
          <Action act={order} tone={action === 'discard' || action === 'cancel' ? 'danger' : 'primary'}>
            {verb} {total} {preview.count === 1 ? 'job' : 'jobs'}
            {action === 'runNow' ? ' now' : ''}
          </Action>
        )
      }
    >
      <p>
        {which} {what}
      </p>
      <Trouble error={error} />
      {preview === null && error === null && <p class="muted">Counting…</p>}
      {isNone && <p>No job matches now: there is nothing to do.</p>}
      {preview !== null && !isNone && <Samples preview={preview} />}
      {preview !== null && !isNone && (action === 'redrive' || action === 'runNow') && (
        <div class="fields">
          {action === 'redrive' && (
            <label class="field">
              <span>Canary: try so many first</span>
              <input
                type="number"
                min="1"
                max="1000"
                value={canary}
                onInput={(event) => setCanary(event.currentTarget.value)}
              />
            </label>
          )}
          <label class="field">
            <span>Rate: jobs per second</span>
            <input
              type="number"
              min="0.1"
              step="any"
              placeholder="all at once"
              value={rate}
              onInput={(event) => setRate(event.currentTarget.value)}
            />
          </label>
        </div>
      )}
      {preview !== null && !isNone && action === 'redrive' && (
        <>
          <label class="choice">
            <input
              type="checkbox"
              checked={keepsAttempts}
              onChange={(event) => setKeepsAttempts(event.currentTarget.checked)}
            />
            Keep the attempts that were spent
          </label>
          {canary !== '' && (
            <p class="muted">
              The rest follows only when {count(Number(canary), 'canary', 'canaries')} completed without a failure.
            </p>
          )}
        </>
      )}
    </Dialog>
  );
}

function Samples({ preview }: { readonly preview: BulkResult }): VNode {
  const queues = [...new Set(preview.samples.map(({ queue }) => queue))];
  return (
    <div class="stack">
      <p>
        <strong>{cappedCount(preview.count, preview.isExact)}</strong>{' '}
        {preview.count === 1 ? 'job matches' : 'jobs match'}
        {queues.length > 0 && (
          <>
            ; some of them, of {queues.length === 1 ? 'queue' : 'queues'} <bdi>{queues.join(', ')}</bdi>:
          </>
        )}
      </p>
      <ul class="stack">
        {preview.samples.map(({ id, name, state, deadReason, lastError }) => (
          <li key={id}>
            <a href={linkTo(['jobs', id])}>
              <bdi>{name}</bdi>
            </a>{' '}
            <StateMark state={state} reason={deadReason} />
            {lastError !== null && (
              <div class="muted clip">
                <bdi>{short(`${lastError.name}: ${lastError.message}`, 200)}</bdi>
              </div>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
