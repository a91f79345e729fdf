export { type Access, accessFor, accessOf, budgetOf, freeAccess, type GateAccess, isFree } from './access.ts';
export { type Admission, type AdmitRequest, admissibleAt, admit } from './admit.ts';
export { admitClaim, type ClaimAdmission, type GatedDemand } from './admit-claim.ts';
export { withinBounds } from './bounds.ts';
export { DISTINCT_JOBS } from './constants.ts';
export { type GateChange, type GateEvent, type GateFigures, gateFigures } from './event.ts';
export {
  addRun,
  type EndedRun,
  type Evidence,
  emptyReport,
  evidenceOf,
  foldChildren,
  foldRuns,
  type GateReport,
  type GatheredReport,
} from './evidence.ts';
export { applyReport, isForgettable, passTime } from './gate.ts';
export { pin, reset, unpin } from './operate.ts';
export { applyParentReport, type Children, childrenSpanMs, isCountDue, returnChildProbe } from './parent.ts';
export { isHandedBack, pickProbe } from './probe.ts';
export { peakRate } from './rate.ts';
export { type GateKind, type GateRef, gateKey, gateKinds, gateOfJob } from './ref.ts';
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
export {
  applySoftReport,
  endsByTime,
  isSoftForgettable,
  judgeSoftFailure,
  passSoftTime,
  type SoftFailure,
} from './soft.ts';
export { closedGate, formatGate, type GateState, type Phase, type Pin, parseGate } from './state.ts';
export { type Transition, unchanged } from './transition.ts';
