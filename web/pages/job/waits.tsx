import type { VNode } from 'preact';
import { linkTo } from '../../app/router.ts';
import type { Operations } from '../../client/operations.ts';
import { moment, relative } from '../../components/format.ts';
import { Notice } from '../../components/notice.tsx';
import { useNow } from '../../components/time.tsx';

type Reason = Operations['listWaits']['answer']['reasons'][number];

/** Where the thing that holds the job can be looked at and changed. */
const pageOf: Readonly<Partial<Record<Reason['kind'], string>>> = {
  paused: 'queues',
  gate: 'gates',
  limit: 'limits',
  unserved: 'workers',
};

/** Why a job does not run now, and until when. */
export function Waits({ reasons }: { readonly reasons: readonly Reason[] }): VNode | null {
  const now = useNow();
  if (reasons.length === 0) return null;
  const isHeld = reasons.some(({ kind }) => kind !== 'due' && kind !== 'next');
  return (
    <Notice tone={isHeld ? 'warn' : 'calm'} title={reasons[0]?.kind === 'next' ? 'It runs next' : 'Why it waits'}>
      <ul>
        {reasons.map(({ kind, text, about, until }) => (
          <li key={text}>
            <bdi>{until === null ? text : withTime(text, until, now)}</bdi>{' '}
            {pageOf[kind] !== undefined && (
              <a
                href={linkTo([
                  pageOf[kind],
                  ...(about === null || kind === 'paused' || kind === 'unserved' ? [] : [about]),
                ])}
              >
                Show {pageOf[kind]}
              </a>
            )}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** The server writes points in time for programs; people want to know how far away they are. */
function withTime(text: string, until: number, now: number): string {
  const written = `at ${new Date(until).toISOString()}`;
  return text.replace(written, `${relative(until, now)}, ${moment(until)}`);
}
