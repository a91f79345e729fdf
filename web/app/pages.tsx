import type { VNode } from 'preact';
import type { IconName } from '../components/icon.tsx';
import { AuditPage } from '../pages/audit/audit.tsx';
import { FailuresPage } from '../pages/failures/failures.tsx';
import { GatesPage } from '../pages/gates/gates.tsx';
import { JobsPage } from '../pages/jobs/jobs.tsx';
import { LimitsPage } from '../pages/limits/limits.tsx';
import { OverviewPage } from '../pages/overview/overview.tsx';
import { PolicyLabPage } from '../pages/policy-lab/policy-lab.tsx';
import { QueuesPage } from '../pages/queues/queues.tsx';
import { SchedulesPage } from '../pages/schedules/schedules.tsx';
import { WorkersPage } from '../pages/workers/workers.tsx';
import type { Location } from './router.ts';

export interface Page {
  readonly path: string;
  readonly title: string;
  /** After g. */
  readonly key: string;
  readonly icon: IconName;
  readonly show: (location: Location) => VNode;
}

export const pages: readonly Page[] = [
  {
    path: 'overview',
    title: 'Overview',
    key: 'o',
    icon: 'overview',
    show: (location) => <OverviewPage {...location} />,
  },
  {
    path: 'failures',
    title: 'Failures',
    key: 'f',
    icon: 'failures',
    show: (location) => <FailuresPage {...location} />,
  },
  { path: 'jobs', title: 'Jobs', key: 'j', icon: 'jobs', show: (location) => <JobsPage {...location} /> },
  { path: 'queues', title: 'Queues', key: 'q', icon: 'queues', show: () => <QueuesPage /> },
  { path: 'gates', title: 'Gates', key: 'g', icon: 'gates', show: (location) => <GatesPage {...location} /> },
  { path: 'limits', title: 'Limits', key: 'l', icon: 'limits', show: (location) => <LimitsPage {...location} /> },
  { path: 'schedules', title: 'Schedules', key: 's', icon: 'schedules', show: () => <SchedulesPage /> },
  { path: 'workers', title: 'Workers', key: 'w', icon: 'workers', show: () => <WorkersPage /> },
  { path: 'audit', title: 'Audit', key: 'a', icon: 'audit', show: () => <AuditPage /> },
  { path: 'policy-lab', title: 'Policy lab', key: 'p', icon: 'policy-lab', show: () => <PolicyLabPage /> },
];

/** The first page is shown where the address names none. */
export function pageOf([path]: readonly string[]): Page | null {
  if (path === undefined) return pages[0] as Page;
  return pages.find((page) => page.path === path) ?? null;
}
