import type { VNode } from 'preact';
import { cappedCount, count, number } from '../../components/format.ts';
import { Notice } from '../../components/notice.tsx';
import { Ago, useNow } from '../../components/time.tsx';
import { type Concerns, concernsOf } from './concerns.ts';

const MOST_LISTED = 8;

/** What a person should look at, the worst first; or that there is nothing. */
export function Attention({ concerns }: { readonly concerns: Concerns }): VNode {
  const now = useNow();
  const found = concernsOf(concerns, now);
  if (found.length === 0) {
    const alive = concerns.workers.filter((worker) => worker.alive).length;
    return (
      <Notice tone="good" title="All is well">
        <p>
          No gate is open, no queue paused, no schedule late, no job dead; {count(alive, 'worker')} alive,{' '}
          {cappedCount(concerns.running.count, concerns.running.isExact)} jobs running.
        </p>
      </Notice>
    );
  }
  return (
    <Notice tone={found.some(({ isBad }) => isBad) ? 'bad' : 'warn'} title="Needs a look">
      <ul>
        {found.slice(0, MOST_LISTED).map(({ about, text, href, since }) => (
          <li key={about}>
            <a href={href}>
              <bdi>{text}</bdi>
            </a>
            {since !== null && (
              <span class="muted">
                {' '}
                Began <Ago at={since} />.
              </span>
            )}
          </li>
        ))}
      </ul>
      {found.length > MOST_LISTED && <p class="muted">and {number(found.length - MOST_LISTED)} more.</p>}
    </Notice>
  );
}
