import type { VNode } from 'preact';
import type { ErrorGroup } from '../../client/answers.ts';
import { Bars } from '../../components/bars.tsx';
import { count } from '../../components/format.ts';

/** At which attempt jobs with this error recovered: whether more attempts would have helped. */
export function Attempts({ group }: { readonly group: ErrorGroup }): VNode {
  return (
    <section class="card stack">
      <h2>Recovered at which attempt</h2>
      <Bars
        label="Recovered jobs by attempt"
        bars={group.recoveredAt.map(({ attempt, jobs }) => ({
          title: `Attempt ${attempt}`,
          value: jobs,
          text: count(jobs, 'job'),
        }))}
      />
    </section>
  );
}
