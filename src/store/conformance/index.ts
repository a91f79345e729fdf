import { asideCases } from './aside.ts';
import { cancelCases } from './cancel.ts';
import { changeCases } from './change.ts';
import { claimCases } from './claim.ts';
import { behindGatesCases } from './claim-behind-gates.ts';
import { claimGatedCases } from './claim-gated.ts';
import { limitCases } from './claim-limited.ts';
import { debounceCases } from './debounce.ts';
import { discardCases } from './discard.ts';
import { endedCases } from './ended.ts';
import { enqueueCases } from './enqueue.ts';
import { errorGroupCases } from './error-groups.ts';
import { errorHistoryCases } from './error-history.ts';
import { expiredCases } from './expired.ts';
import { fenceCases } from './fence.ts';
import { forecastCases } from './forecast.ts';
import { gateCases } from './gates.ts';
import { heartbeatCases } from './heartbeat.ts';
import { historyCases } from './history.ts';
import { holdCases } from './hold.ts';
import { keyCases } from './keys.ts';
import { laneCases } from './lanes.ts';
import { ledgerCases } from './ledger.ts';
import { logCases } from './logs.ts';
import { memoCases } from './memo.ts';
import { onLimitCases } from './on-limit.ts';
import { orderCases } from './orders.ts';
import { partitionCases } from './partitions.ts';
import { pruneCases } from './prune.ts';
import { reactionCases } from './reactions.ts';
import { readCases } from './read.ts';
import { redriveCases } from './redrive.ts';
import { refundCases } from './refund.ts';
import { reportCases } from './report.ts';
import { resultCases } from './result.ts';
import { retentionCases } from './retention.ts';
import { runNowCases } from './run-now.ts';
import { scheduleCases } from './schedules.ts';
import { selectionCases } from './selection.ts';
import { settleCases } from './settle.ts';
import { statsCases } from './stats.ts';
import { bind, type ConformanceCase, type ConformanceOptions, type OpenStore, type StoreCase } from './suite.ts';
import { throttleCases } from './throttle.ts';
import { traceCases } from './trace.ts';
import { closeCases, wakeCases } from './wake.ts';
import { workerCases } from './workers.ts';

export type { ConformanceCase, ConformanceOptions, OpenStore, StoreHarness } from './suite.ts';

const suite: readonly StoreCase[] = [
  ...enqueueCases,
  ...keyCases,
  ...traceCases,
  ...claimCases,
  ...laneCases,
  ...partitionCases,
  ...behindGatesCases,
  ...claimGatedCases,
  ...limitCases,
  ...asideCases,
  ...reportCases,
  ...heartbeatCases,
  ...settleCases,
  ...reactionCases,
  ...refundCases,
  ...fenceCases,
  ...expiredCases,
  ...memoCases,
  ...readCases,
  ...ledgerCases,
  ...resultCases,
  ...logCases,
  ...endedCases,
  ...debounceCases,
  ...throttleCases,
  ...onLimitCases,
  ...selectionCases,
  ...cancelCases,
  ...redriveCases,
  ...discardCases,
  ...changeCases,
  ...runNowCases,
  ...holdCases,
  ...gateCases,
  ...pruneCases,
  ...retentionCases,
  ...statsCases,
  ...forecastCases,
  ...historyCases,
  ...errorHistoryCases,
  ...scheduleCases,
  ...orderCases,
  ...workerCases,
  ...errorGroupCases,
  ...wakeCases,
  ...closeCases,
];

/**
 * What every store has to pass, as plain cases for any test runner.
 *
 * @example
 * for (const { verb, name, skip, run } of storeConformance(openMyStore)) {
 *   if (skip) test.skip(`${verb}: ${name} (${skip})`);
 *   else test(`${verb}: ${name}`, run);
 * }
 */
export function storeConformance(open: OpenStore, options: ConformanceOptions = {}): ConformanceCase[] {
  return bind(suite, open, options);
}
