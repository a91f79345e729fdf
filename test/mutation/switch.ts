import { getEnvironmentData } from 'node:worker_threads';

/** Shared with the threads that a test starts. */
export interface Switch {
  /** The mutant that is on, or -1. */
  readonly on: Int32Array;
  /** Set to 1 for every mutant that was reached. */
  readonly reached: Uint8Array;
}

const shared = getEnvironmentData('mutants') as Switch | undefined;

/** Stands in the instrumented sources wherever they have a mutant. */
export function mutant(id: number): boolean {
  if (shared === undefined) return false;
  shared.reached[id] = 1;
  return shared.on[0] === id;
}
