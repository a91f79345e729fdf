import { BUDGET_FLOOR_SHARE, BUDGET_PER_SUCCESS, BUDGET_SPAN_MS, FLOOR_RATE } from './constants.ts';

/*
 * The retry budget keeps retries a bounded share of the traffic where nothing trips: each completed first attempt pays for
 * a fifth of a retry, and a floor keeps retries going when little completes. A retry that the budget does not pay for
 * waits; fresh jobs do not. In any span: retries <= what was saved (10 s worth) + floor x span + successes / 5.
 */

export interface Budget {
  readonly tokens: number;
  /** When `tokens` was reckoned. */
  readonly at: number;
}

/** Retries per second that are always paid for. */
export function floorRate(peak: number): number {
  return Math.max(FLOOR_RATE, peak * BUDGET_FLOOR_SHARE);
}

export function budgetCap(peak: number): number {
  return ((floorRate(peak) + peak * BUDGET_PER_SUCCESS) * BUDGET_SPAN_MS) / 1_000;
}

export function fullBudget(now: number): Budget {
  return { tokens: budgetCap(0), at: now };
}

export function tokensIn(budget: Budget, peak: number, now: number): number {
  const earned = (Math.max(0, now - budget.at) * floorRate(peak)) / 1_000;
  return Math.min(budgetCap(peak), budget.tokens + earned);
}

export function deposit(budget: Budget, firstSuccesses: number, peak: number, now: number): Budget {
  const tokens = tokensIn(budget, peak, now) + firstSuccesses * BUDGET_PER_SUCCESS;
  return { tokens: Math.min(budgetCap(peak), tokens), at: now };
}

export function spendOn(budget: Budget, retries: number, peak: number, now: number): Budget {
  // A debt is paid off before retries start again, but no more than 10 s worth of it.
  return { tokens: Math.max(-budgetCap(peak), tokensIn(budget, peak, now) - retries), at: now };
}

/** A peak that grows is no reason to take a budget for spent: what the larger cap has room for is there at once. */
export function raiseCap(budget: Budget, before: number, after: number, now: number): Budget {
  const more = budgetCap(after) - budgetCap(before);
  return more <= 0 ? budget : { tokens: tokensIn(budget, before, now) + more, at: now };
}

/** When the next retry is paid for. */
export function fundedAt(budget: Budget, peak: number, now: number): number {
  const missing = 1 - tokensIn(budget, peak, now);
  return missing <= 0 ? now : now + Math.ceil((missing * 1_000) / floorRate(peak));
}
