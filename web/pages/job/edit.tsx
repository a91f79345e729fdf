import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Job } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { Action } from '../../components/action.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { toast } from '../../components/toasts.tsx';

interface EditDialogProps {
  readonly job: Job;
  readonly payload: unknown;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Another payload for a dead job, and another chance. */
export function EditDialog({ job, payload, onClose, onDone }: EditDialogProps): VNode {
  const [text, setText] = useState(() => JSON.stringify(payload, null, 2));
  const problem = problemOf(text);
  const redrive = async (): Promise<void> => {
    await call('redriveDead', { body: { ids: [job.id], edit: JSON.parse(text) as unknown } });
    toast('It runs again, with the new payload.');
    onDone();
    onClose();
  };
  return (
    <Dialog
      title="Edit the payload and redrive"
      onClose={onClose}
      closeText="Leave it"
      actions={
        <Action tone="primary" act={redrive} disabled={problem !== null}>
          Redrive with this payload
        </Action>
      }
    >
      <label class="field">
        <span>Payload, as JSON</span>
        <textarea value={text} rows={14} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        <small role="status">{problem ?? 'Valid JSON.'}</small>
      </label>
    </Dialog>
  );
}

function problemOf(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not valid JSON: ${(error as Error).message}`;
  }
}
