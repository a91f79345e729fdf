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

/** The list of jobs by the filters that other pages link to, and by those that people use. */
export const filteredPages: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['ready', 'running', 'retrying', 'scheduled', 'completed', 'dead', 'cancelled'].map((state) => [
      `jobs ${state}`,
      `#/jobs?state=${state}`,
    ]),
  ),
  'jobs of a queue': '#/jobs?queue=thumbnails&state=ready',
  'jobs of a name': '#/jobs?name=sessions.clean',
  'jobs with a tag': '#/jobs?tag=customer%3A7',
  'jobs with a message': '#/jobs?message=declined',
};
