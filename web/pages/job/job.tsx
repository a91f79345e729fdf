import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { linkTo } from '../../app/router.ts';
import type { Job, Revealed, RunLog, RunRecord } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { Facts } from '../../components/facts.tsx';
import { number } from '../../components/format.ts';
import { Json, LongText } from '../../components/json.tsx';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { StateMark } from '../../components/state.tsx';
import { Ago } from '../../components/time.tsx';
import { EditDialog } from './edit.tsx';
import { Logs } from './logs.tsx';
import { RunList, Timeline } from './timeline.tsx';
import { Waits } from './waits.tsx';
import { policyWords } from './words.ts';

interface Shown {
  readonly job: Job;
  readonly runs: readonly RunRecord[];
  readonly logs: readonly RunLog[];
  readonly reasons: Awaited<ReturnType<typeof call<'listWaits'>>>['reasons'];
}

const HIDDEN = '[redacted]';

export function JobPage({ id }: { readonly id: string }): VNode {
  const [revealed, setRevealed] = useState<Revealed | null>(null);
  const [isEditing, setEditing] = useState(false);
  const loaded = useData(
    async (signal): Promise<Shown> => {
      const [job, { runs }, { logs }, { reasons }] = await Promise.all([
        call('getJob', { params: { id }, signal }),
        call('listRuns', { params: { id }, signal }),
        call('listLogs', { params: { id }, query: {}, signal }),
        call('listWaits', { params: { id }, signal }),
      ]);
      return { job, runs, logs, reasons };
    },
    [id],
  );
  const { data, reload } = loaded;
  const reveal = async (): Promise<Revealed> => {
    const seen = await call('revealJob', { params: { id }, body: {} });
    setRevealed(seen);
    return seen;
  };
  const edit = async (): Promise<void> => {
    // What is redacted would be stored as such.
    await reveal();
    setEditing(true);
  };
  const edited = (): void => {
    // What was revealed is not its payload any more.
    setRevealed(null);
    reload();
  };
  return (
    <Page
      title={data === null ? 'Job' : <bdi>{data.job.name}</bdi>}
      lead={<code>{id}</code>}
      actions={data !== null && <JobActions job={data.job} reload={reload} onEdit={edit} />}
    >
      <WhenLoaded from={loaded}>
        {({ job, runs, logs, reasons }) => (
          <>
            <div>
              <StateMark state={job.state} reason={job.deadReason} />{' '}
              {job.cancelRequested && job.state === 'running' && <span class="muted">was told to stop</span>}
            </div>
            <Waits reasons={reasons} />
            <section class="card stack">
              <h2>Timeline</h2>
              <Timeline job={job} runs={runs} />
              {runs.length === 0 ? <Empty title="It has not run yet" /> : <RunList job={job} runs={runs} />}
            </section>
            <Logs logs={logs.map((log) => revealed?.logs.find(({ run }) => run === log.run) ?? log)} />
            <div class="columns">
              <section class="card stack">
                <h2>Facts</h2>
                <JobFacts job={job} />
              </section>
              <section class="card stack">
                <div class="card-head">
                  <h2>Payload</h2>
                  {revealed === null && JSON.stringify([job.payload, logs]).includes(HIDDEN) && (
                    <Action
                      isSmall
                      act={async () => {
                        await reveal();
                        return 'It is shown, and that is on record.';
                      }}
                    >
                      Reveal
                    </Action>
                  )}
                </div>
                <Json label="Payload" value={revealed === null ? job.payload : revealed.payload} />
                {job.progress !== null && (
                  <>
                    <h2>Progress</h2>
                    <Json label="Progress" value={revealed === null ? job.progress : revealed.progress} />
                  </>
                )}
                {job.result !== null && (
                  <>
                    <h2>Result</h2>
                    <Json label="Result" value={revealed === null ? job.result : revealed.result} />
                  </>
                )}
              </section>
            </div>
            {job.lastError !== null && (
              <section class="card stack">
                <div class="card-head">
                  <h2>Last error</h2>
                  {job.lastError.fingerprint !== undefined && (
                    <a href={linkTo(['failures', job.lastError.fingerprint])}>All jobs with this error</a>
                  )}
                </div>
                <LongText
                  label="Last error"
                  text={job.lastError.stack ?? `${job.lastError.name}: ${job.lastError.message}`}
                />
              </section>
            )}
            {isEditing && (
              <EditDialog job={job} payload={revealed?.payload} onClose={() => setEditing(false)} onDone={edited} />
            )}
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

interface JobActionsProps {
  readonly job: Job;
  readonly reload: () => void;
  readonly onEdit: () => Promise<void>;
}

function JobActions({ job: { id, state }, reload, onEdit }: JobActionsProps): VNode {
  const cancel = async (): Promise<string> => {
    const { result } = await call('cancelJob', { params: { id }, body: {} });
    reload();
    return result === 'cancelling'
      ? 'It was told to stop.'
      : result === 'cancelled'
        ? 'It was cancelled.'
        : 'It had ended already.';
  };
  const runNow = async (): Promise<string> => {
    const { changed } = await call('runJobNow', { params: { id }, body: {} });
    reload();
    return changed ? 'It is due now.' : 'It does not wait for its time.';
  };
  const redrive = async (): Promise<string> => {
    await call('redriveDead', { body: { ids: [id] } });
    reload();
    return 'It runs again, with all its attempts.';
  };
  return (
    <>
      {(state === 'scheduled' || state === 'retrying') && (
        <Action tone="primary" act={runNow}>
          Run now
        </Action>
      )}
      {state === 'dead' && (
        <>
          <Action tone="primary" act={redrive}>
            Redrive
          </Action>
          <Action act={onEdit}>Edit and redrive…</Action>
        </>
      )}
      {['scheduled', 'ready', 'retrying', 'running'].includes(state) && (
        <Action tone="danger" act={cancel}>
          Cancel
        </Action>
      )}
    </>
  );
}

function JobFacts({ job }: { readonly job: Job }): VNode {
  const time = (at: number | null): VNode | null => (at === null ? null : <Ago at={at} />);
  return (
    <Facts
      facts={[
        ['Queue', <a href={linkTo(['jobs'], { queue: job.queue })}>{job.queue}</a>],
        ['Priority, lane', `${job.priority}, ${job.lane}`],
        [
          'Attempts',
          `${number(job.attempts)} of ${number(job.policy.maxAttempts)} (${number(job.runs)} runs, ${number(job.crashes)} crashed)`,
        ],
        ['Policy', policyWords(job.policy)],
        ['Key', job.key],
        ['Tags', job.tags.length === 0 ? null : job.tags.map((tag) => <TagLink key={tag} tag={tag} />)],
        ['Resource', job.resource === null ? null : <a href={linkTo(['gates', job.resource])}>{job.resource}</a>],
        [
          'Limits',
          job.limits.length === 0
            ? null
            : job.limits.map(({ limit, key }) => `${limit}${key === '' ? '' : ` (${key})`}`).join(', '),
        ],
        ['Version', job.version],
        ['Trace', job.trace?.split('-')[1] ?? null],
        ['Enqueued', time(job.enqueuedAt)],
        ['First run', time(job.firstStartedAt)],
        ['Due', job.finishedAt === null && job.state !== 'running' ? time(job.dueAt) : null],
        ['Running on', job.worker],
        ['Lease ends', time(job.leaseEndsAt)],
        ['Ended', time(job.finishedAt)],
        ['Result', job.resultError === null ? null : `not stored: ${job.resultError}`],
      ]}
    />
  );
}

function TagLink({ tag }: { readonly tag: string }): VNode {
  return (
    <>
      <a class="tag" href={linkTo(['jobs'], { tag })}>
        <bdi>{tag}</bdi>
      </a>{' '}
    </>
  );
}
