export { type Admission, type AdmitRequest, admissibleAt, admit, giveBack } from './admit.ts';
export { type GateChange, type GateEvent, type GateFigures, gateFigures } from './event.ts';
export { type EndedRun, type Evidence, evidenceOf, foldRuns, type GateReport } from './evidence.ts';
export { applyReport, isForgettable } from './gate.ts';
export { pin, reset, unpin } from './operate.ts';
export { admitChildProbe, applyChildren, type Children, childrenSpanMs } from './parent.ts';
export { pickProbe } from './probe.ts';
export {
  type FailureVerdict,
  judgeFailure,
  refund,
  type SettledFailure,
  type Spent,
  spend,
  verdictAt,
} from './refund.ts';
export { workerKey } from './sets.ts';
export { applySoftReport, isSoftForgettable, judgeSoftFailure, type SoftFailure } from './soft.ts';
export { closedGate, formatGate, type GateState, type Phase, type Pin, parseGate } from './state.ts';
export type { Transition } from './transition.ts';
