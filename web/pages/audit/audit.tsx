import type { VNode } from 'preact';
import { call } from '../../client/request.ts';
import { useData } from '../../client/use-data.ts';
import { Empty } from '../../components/notice.tsx';
import { Operations } from '../../components/operations.tsx';
import { Page, WhenLoaded } from '../../components/page.tsx';

export function AuditPage(): VNode {
  const loaded = useData((signal) => call('listAudit', { query: { limit: 100 }, signal }), []);
  return (
    <Page
      title="Audit"
      lead="Who did what, from where, and to how many jobs. Kept for 90 days; the newest 100 are listed."
    >
      <WhenLoaded from={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing was ordered yet" />
          ) : (
            <Operations operations={items} reload={loaded.reload} />
          )
        }
      </WhenLoaded>
    </Page>
  );
}
