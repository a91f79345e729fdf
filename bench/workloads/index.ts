import type { Workload } from '../harness/workload.ts';
import { w1 } from './w1-enqueue.ts';
import { w2 } from './w2-drain.ts';

export const workloads: readonly Workload[] = [w1, w2];

export function workloadById(id: string): Workload {
  const workload = workloads.find((one) => one.id === id);
  if (workload === undefined) {
    throw new Error(`there is no workload ${id}; there are ${workloads.map((one) => one.id).join(', ')}`);
  }
  return workload;
}
