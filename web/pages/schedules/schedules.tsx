import type { VNode } from 'preact';
import { takesJob } from '../../../src/store/workers.ts';
import { linkTo } from '../../app/router.ts';
import type { Operation, RegisteredWorker, ScheduleInfo } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { moment, span } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Operations } from '../../components/operations.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Mark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { Ago, useNow } from '../../components/time.tsx';

/** A tick that is this late was missed: no worker fires schedules. */
const LATE_MS = 60_000;
const OPERATIONS_LOOKED_AT = 100;
const OPERATIONS_SHOWN = 5;

/** `isTaken`: a live worker takes its jobs. */
interface Row extends ScheduleInfo {
  readonly isTaken: boolean;
}

interface Shown {
  readonly rows: readonly Row[];
  readonly operations: readonly Operation[];
}

type Order = 'pauseSchedule' | 'resumeSchedule' | 'triggerSchedule';

const said: Readonly<Record<Order, string>> = {
  pauseSchedule: 'No tick fires until it is resumed.',
  resumeSchedule: 'It goes on.',
  triggerSchedule: 'Its job was enqueued.',
};

export function SchedulesPage(): VNode {
  const loaded = useData(async (signal): Promise<Shown> => {
    const [schedules, workers, audit] = await Promise.all([
      call('listSchedules', { query: { limit: 200 }, signal }),
      call('listWorkers', { signal }),
      call('listAudit', { query: { limit: OPERATIONS_LOOKED_AT }, signal }),
    ]);
    return {
      rows: schedules.items.map((schedule) => ({ ...schedule, isTaken: workers.items.some(takes(schedule)) })),
      operations: audit.items.filter(({ action }) => action === 'schedule').slice(0, OPERATIONS_SHOWN),
    };
  }, []);
  const order = async (what: Order, name: string): Promise<string> => {
    await call(what, { params: { name }, body: {} });
    loaded.reload();
    return said[what];
  };
  const columns: readonly Column<Row>[] = [
    {
      title: 'Schedule',
      kind: 'main',
      cell: ({ name, job }) => (
        <>
          <bdi>{name}</bdi>
          <div class="muted">
            <a href={linkTo(['jobs'], { name: job })}>
              <bdi>{job}</bdi>
            </a>
          </div>
        </>
      ),
    },
    { title: 'When', cell: ({ timing }) => <bdi>{timingWords(timing)}</bdi> },
    { title: 'State', kind: 'tight', cell: (schedule) => <ScheduleMark {...schedule} /> },
    { title: 'Next', kind: 'tight', cell: ({ nextAt }) => (nextAt === null ? '–' : <Ago at={nextAt} />) },
    {
      title: 'Last',
      kind: 'tight',
      cell: ({ lastAt, lastJobId }) =>
        lastAt === null ? (
          '–'
        ) : lastJobId === null ? (
          <Ago at={lastAt} />
        ) : (
          <a href={linkTo(['jobs', lastJobId])}>
            <Ago at={lastAt} />
          </a>
        ),
    },
    {
      title: 'Do',
      kind: 'tight',
      cell: ({ name, paused }) => (
        <div class="actions">
          <Action isSmall label={`Trigger ${name}`} act={() => order('triggerSchedule', name)}>
            Trigger
          </Action>
          <Action
            isSmall
            label={`${paused ? 'Resume' : 'Pause'} ${name}`}
            act={() => order(paused ? 'resumeSchedule' : 'pauseSchedule', name)}
          >
            {paused ? 'Resume' : 'Pause'}
          </Action>
        </div>
      ),
    },
  ];
  return (
    <Page title="Schedules" lead="Each tick enqueues one job. Workers and servers fire ticks; none is a leader.">
      <WhenLoaded from={loaded}>
        {({ rows, operations }) =>
          rows.length === 0 ? (
            <Empty title="No schedule">They come from code, or from `mulligan schedules set`.</Empty>
          ) : (
            <>
              <Table caption="Schedules" columns={columns} rows={rows} rowKey={({ name }) => name} />
              {operations.length > 0 && (
                <section class="stack">
                  <h2>Changes by hand</h2>
                  <Operations operations={operations} reload={loaded.reload} />
                </section>
              )}
            </>
          )
        }
      </WhenLoaded>
    </Page>
  );
}

/** Whether a worker would run its jobs. Workers that speak HTTP do not register, so that none does is not certain. */
function takes({ job, queue }: ScheduleInfo): (worker: RegisteredWorker) => boolean {
  return (worker) => worker.alive && worker.queues.includes(queue) && takesJob(worker, job);
}

function ScheduleMark({ paused, nextAt, isTaken }: Row): VNode {
  const now = useNow();
  if (paused) {
    return (
      <Mark icon="paused" tone="warn">
        paused
      </Mark>
    );
  }
  if (nextAt === null) {
    return (
      <Mark icon="completed" tone="none">
        over
      </Mark>
    );
  }
  if (now - nextAt > LATE_MS) {
    return (
      <Mark icon="failures" tone="bad">
        late
      </Mark>
    );
  }
  if (!isTaken) {
    return (
      <Mark icon="failures" tone="warn">
        no worker seen
      </Mark>
    );
  }
  return (
    <Mark icon="scheduled" tone="good">
      on time
    </Mark>
  );
}

function timingWords(timing: ScheduleInfo['timing']): string {
  if ('cron' in timing) return `${timing.cron}${timing.timezone ? ` (${timing.timezone})` : ''}`;
  if ('everyMs' in timing) return `every ${span(timing.everyMs)}`;
  return `once, ${moment(timing.at)}`;
}
