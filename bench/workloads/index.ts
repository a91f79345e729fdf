import type { Workload } from '../harness/workload.ts';
import { w1 } from './w1-enqueue.ts';
import { w2 } from './w2-drain.ts';
import { w3 } from './w3-retry.ts';
import { w4 } from './w4-pickup.ts';
import { w5 } from './w5-starvation.ts';
import { w6 } from './w6-growth.ts';
import { w6b } from './w6b-churn.ts';
import { w7 } from './w7-crash.ts';
import { w8a, w8b, w8c, w8d } from './w8-curves.ts';
import { w9 } from './w9-cost.ts';
import { w10 } from './w10-partitions.ts';
import { w11 } from './w11-retry-storm.ts';
import { w12 } from './w12-healthy-gate.ts';
import { w13 } from './w13-shut-gate.ts';
import { w14 } from './w14-many-gates.ts';
import { w15 } from './w15-error-groups.ts';
import { w16 } from './w16-limits.ts';
import { w17 } from './w17-large-tenant.ts';
import { w18 } from './w18-many-keys.ts';

export const workloads: readonly Workload[] = [
  ...[w1, w2, w3, w4, w5, w6, w6b, w7, w8a, w8b, w8c, w8d, w9, w10],
  ...[w11, w12, w13, w14, w15, w16, w17, w18],
];

export function workloadById(id: string): Workload {
  const workload = workloads.find((one) => one.id === id);
  if (workload === undefined) {
    throw new Error(`there is no workload ${id}; there are ${workloads.map((one) => one.id).join(', ')}`);
  }
  return workload;
}
