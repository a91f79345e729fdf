import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { linkTo } from '../../app/router.ts';
import type { LimitDetails } from '../../client/answers.ts';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Action } from '../../components/action.tsx';
import { Meter } from '../../components/bars.tsx';
import { Tile } from '../../components/facts.tsx';
import { number } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';
import { Mark } from '../../components/state.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { ChangeLimit, type Target } from './change.tsx';
import { bound, rateText } from './limits.tsx';

type Key = LimitDetails['keys'][number];

export function LimitPage({ name }: { readonly name: string }): VNode {
  const [target, setTarget] = useState<Target | null>(null);
  const loaded = useData((signal) => call('getLimit', { params: { name }, query: {}, signal }), [name]);
  const { data, reload } = loaded;
  const reset = async (key: string | null): Promise<string> => {
    await call('resetLimit', { params: { name }, body: key === null ? {} : { key } });
    reload();
    return 'What code says holds again.';
  };
  const columns: readonly Column<Key>[] = [
    {
      title: 'Key',
      kind: 'main',
      cell: ({ key, set }) => (
        <>
          <bdi>{key === '' ? 'all jobs of the limit' : key}</bdi>
          {set !== null && <div class="muted">changed by hand</div>}
        </>
      ),
    },
    { title: 'In use', cell: Use },
    {
      title: 'Running',
      kind: 'right',
      cell: ({ running, settings }) => `${number(running)} of ${bound(settings.concurrency)}`,
    },
    { title: 'Waiting', kind: 'right', cell: ({ waiting }) => number(waiting) },
    { title: 'Starts', kind: 'tight', cell: ({ settings }) => rateText(settings.rate) },
    {
      title: 'Do',
      kind: 'tight',
      cell: ({ key, settings, set }) => (
        <div class="actions">
          <Action isSmall label={`Change the key ${key}`} act={() => setTarget({ key, settings })}>
            Change…
          </Action>
          {set !== null && (
            <Action isSmall label={`Reset the key ${key}`} act={() => reset(key)}>
              Reset
            </Action>
          )}
        </div>
      ),
    },
  ];
  return (
    <Page
      title={<bdi>{name}</bdi>}
      actions={
        data !== null && (
          <>
            <Action tone="primary" act={() => setTarget({ key: null, settings: data.limit.settings })}>
              Change…
            </Action>
            {data.limit.set !== null && <Action act={() => reset(null)}>Reset to code</Action>}
          </>
        )
      }
    >
      <p>
        <a href={linkTo(['limits'])}>All limits</a>
      </p>
      <WhenLoaded from={loaded}>
        {({ limit, keys }) => (
          <>
            <div class="tiles">
              <Tile label="At once, per key" value={bound(limit.settings.concurrency)} />
              <Tile label="At once, all keys" value={bound(limit.settings.total)} />
              <Tile label="Starts per key" value={rateText(limit.settings.rate)} />
              <Tile label="Running" value={number(limit.running)} />
              <Tile label="Waiting" value={number(limit.waiting)} />
            </div>
            <section class="stack">
              <h2>Keys, those with the most waiting jobs first</h2>
              {keys.length === 0 ? (
                <Empty title="No key is in use" />
              ) : (
                <Table caption="Keys" columns={columns} rows={keys} rowKey={({ key }) => key} />
              )}
            </section>
          </>
        )}
      </WhenLoaded>
      {target !== null && <ChangeLimit name={name} target={target} onClose={() => setTarget(null)} onDone={reload} />}
    </Page>
  );
}

function Use({ running, due, settings }: Key): VNode {
  const { concurrency } = settings;
  const isFull = concurrency !== null && running >= concurrency;
  return (
    <>
      {isFull && due > 0 ? (
        <Mark icon="paused" tone="warn">
          full
        </Mark>
      ) : (
        <Mark icon="completed" tone="good">
          room
        </Mark>
      )}
      {concurrency !== null && <Meter share={concurrency === 0 ? 1 : running / concurrency} isFull={isFull} />}
    </>
  );
}
