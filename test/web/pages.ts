import type { Mulligan } from '../../src/mulligan.ts';
import type { Staged } from './stage.ts';

/** Where each page of the dashboard is, with the data of the stage. */
export async function pagesOf(
  mulligan: Mulligan,
  { recovered, dead }: Pick<Staged, 'recovered' | 'dead'>,
): Promise<Readonly<Record<string, string>>> {
  const [worst] = await mulligan.errors.list({ name: 'card.charge' });
  return {
    overview: '#/overview',
    failures: '#/failures',
    group: `#/failures/${worst?.fingerprint}?name=card.charge`,
    job: `#/jobs/${recovered}`,
    'job-dead': `#/jobs/${dead}`,
    jobs: '#/jobs',
    queues: '#/queues',
    gates: '#/gates',
    gate: '#/gates/smtp',
    limits: '#/limits',
    limit: '#/limits/tenant',
    schedules: '#/schedules',
    workers: '#/workers',
    audit: '#/audit',
    'policy-lab': '#/policy-lab',
  };
}

/** The list of jobs by filters that an index serves, or whose search is bounded. */
export const filteredPages: Readonly<Record<string, string>> = {
  'jobs that run': '#/jobs?state=running',
  'jobs that completed': '#/jobs?state=completed',
  'jobs that are dead': '#/jobs?state=dead',
  'jobs that were cancelled': '#/jobs?state=cancelled',
  'jobs with a tag': '#/jobs?tag=customer%3A7',
  'jobs with a message': '#/jobs?message=declined',
};

/** By filters that no index serves: jobs are read in their order until a page is full. */
export const searchedPages: Readonly<Record<string, string>> = {
  'jobs that are ready': '#/jobs?state=ready',
  'jobs that will be retried': '#/jobs?state=retrying',
  'jobs for later': '#/jobs?state=scheduled',
  'jobs of a queue': '#/jobs?queue=thumbnails&state=ready',
  'jobs of a rare name': '#/jobs?name=export.csv',
};
