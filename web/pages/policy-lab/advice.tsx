import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Answer } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { asApiError } from '../../client/use-data.ts';
import { count, number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { toast } from '../../components/toasts.tsx';

const DAYS = 7;

/** What the runs of the last days say about the policies in use. Read when asked for: it costs the store more than a list. */
export function LedgerAdvice(): VNode {
  const [advice, setAdvice] = useState<Answer<'getAdvice'> | null>(null);
  const [isReading, setReading] = useState(false);
  const read = async (): Promise<void> => {
    setReading(true);
    try {
      setAdvice(await call('getAdvice', { query: { days: DAYS } }));
    } catch (error) {
      toast(asApiError(error).message, 'bad');
    } finally {
      setReading(false);
    }
  };
  return (
    <section class="card stack">
      <div class="card-head">
        <h2>What the ledger advises</h2>
        <button type="button" class="button small" disabled={isReading} onClick={() => void read()}>
          {isReading ? 'Reading' : `Read the last ${DAYS} days`}
        </button>
      </div>
      {advice === null && (
        <p class="muted">How retries of each job fared, and what other settings would have changed.</p>
      )}
      {advice?.names.length === 0 && <Empty title="No job ended in this time" />}
      {advice !== null && advice.names.length > 0 && (
        <>
          <p class="muted">
            Of {count(advice.jobs, 'job')}, {number(advice.read)} were read.
          </p>
          <ul class="stack">
            {advice.names.map((one) => (
              <li key={one.name}>
                <strong>
                  <bdi>{one.name}</bdi>
                </strong>{' '}
                <span class="muted">
                  {number(one.failed)} of {count(one.jobs, 'job')} failed at least once, {number(one.retries.recovered)}{' '}
                  recovered
                </span>
                {one.proposals.map(({ text }) => (
                  <p key={text}>
                    <bdi>{text}</bdi>
                  </p>
                ))}
                {one.proposals.length === 0 && <p>{one.tooSmall ?? 'Nothing to change.'}</p>}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
