import { accessFor, accessOf, type GateAccess, type GateEvent, type GateState } from '../../src/gate/index.ts';
import type {
  Claim,
  ClaimedJob,
  GateAnswer,
  GatedClaim,
  GatedClaimRequest,
  GateRef,
  WorkerReport,
} from '../../src/store/store.ts';
import type { Check } from './checker.ts';
import type { ModelJob } from './model.ts';

/*
 * Guarantee 12: what a gate lets start.
 *
 * The states of the gates are read from the store after every call that may change one. From them, and not from the code
 * that admits, this says what must not happen: an open gate gives one probe at a time, a ramp keeps to its rate, retries
 * keep to their budget, and each retry is charged once.
 *
 * `accessOf` is used for one thing only: to excuse a claim that passes a gated job over.
 */

const PROBE_SLOT_MS = 35_000;
const BURST_S = 0.5;
/** Rounding, and the moment at which a limit changes. */
const SLACK = 1.01;
const BUDGET_SPAN_S = 10;
const PER_SUCCESS = 0.2;

interface Watched {
  state: GateState;
  access: GateAccess;
  readAt: number;
  /** The probe that has not been reported. */
  probe: { readonly epoch: number; readonly at: number } | null;
  /** How many starts the ramp has paid for, reckoned at `at`. */
  ramp: { readonly epoch: number; starts: number; at: number } | null;
  budget: { tokens: number; at: number };
}

export class GateModel {
  readonly #gates: Map<string, Watched> = new Map();
  readonly #opened: Map<string, number[]> = new Map();
  /** Retries that were claimed without asking a gate, and retries that reports have charged. */
  readonly #uncharged: Map<string, number> = new Map();
  readonly #charged: Map<string, number> = new Map();
  readonly #reports: Set<string> = new Set();
  readonly #down: Set<string> = new Set();
  readonly #isBlind: boolean;

  /** `isBlind`: where calls overlap, nothing is known of gates, and everything is excused. */
  constructor({ isBlind = false }: { readonly isBlind?: boolean } = {}) {
    this.#isBlind = isBlind;
  }

  /** What the store says its gates are now. */
  read(gates: readonly { readonly gate: GateRef; readonly state: GateState }[], { now, expect }: Check): void {
    const names = new Set(gates.map(({ gate }) => nameOf(gate)));
    for (const name of this.#gates.keys()) if (!names.has(name)) this.#gates.delete(name);
    for (const { gate, state } of gates) {
      const name = nameOf(gate);
      const before = this.#gates.get(name);
      const budget = before === undefined ? { ...state.budget } : raised(before, state);
      const probe = before?.probe?.epoch === state.epoch ? before.probe : null;
      const ramp = state.ramp === null ? null : rampOf(before?.ramp ?? null, state, now);
      // Partitions know the gate as it was when it was last written.
      const isWritten = before === undefined || JSON.stringify(before.state) !== JSON.stringify(state);
      const access = isWritten ? accessOf(state, now) : before.access;
      this.#gates.set(name, { state, access, readAt: now, probe, ramp, budget });
      if (gate.kind !== 'resource') continue;
      expect(
        12,
        state.budget.tokens <= budget.tokens + SLACK,
        () => `${name} has a budget of ${state.budget.tokens} retries, but ${budget.tokens} were left`,
      );
    }
  }

  wentDown(resource: string): void {
    this.#down.add(resource);
  }

  /** Whether the dependency of a job was ever down. */
  wasDown(job: ModelJob): boolean {
    return this.#isBlind || this.#down.has(dependencyOf(job.made.resource));
  }

  /** Whether an ordinary claim may pass it over. */
  isGated({ lane, made: { resource } }: ModelJob, now: number): boolean {
    const gate = resource === null ? undefined : this.#gates.get(`resource ${resource}`);
    if (gate === undefined) return false;
    const { gated, at } = gate.access[accessFor(lane)];
    return gated || at === null || at > now;
  }

  /** Whether the gate of a job has opened at or after this time. */
  hasOpened({ made: { resource, name } }: ModelJob, since: number): boolean {
    const gate = resource === null ? `job ${name}` : `resource ${resource}`;
    return this.#isBlind || (this.#opened.get(gate) ?? []).some((at) => at >= since);
  }

  checkClaim({ jobs }: Pick<Claim, 'jobs'>, { now, expect }: Check): void {
    for (const { id, resource, lane, gateEpoch } of jobs) {
      expect(12, gateEpoch === 0, () => `${id} has epoch ${gateEpoch}, but no gate was asked`);
      if (resource === null) continue;
      if (lane === 'retry' || lane === 'suspect') add(this.#uncharged, resource);
      const gate = this.#gates.get(`resource ${resource}`);
      if (gate === undefined || gate.state.pin === 'closed') continue;
      const { phase, heldUntil, pin, probes } = gate.state;
      // A suspect is tried alone, and at the time of a probe.
      const isTrial = lane === 'suspect' && pin === null && (phase === 'ramp' || probes.at <= now);
      const isShut = heldUntil > now || (phase !== 'closed' && !isTrial);
      expect(
        12,
        !isShut,
        () => `${id} was claimed from ${lane} while ${resource} was ${phase}, held until ${heldUntil}`,
      );
      const tokens = tokensAt(gate, gate.readAt);
      const isPaid = lane !== 'retry' || tokens >= capOf(gate.state) / 2 - SLACK;
      expect(12, isPaid, () => `${id} was claimed while the budget of ${resource} was ${tokens}`);
    }
  }

  checkGated({ resource, knows }: GatedClaimRequest, { jobs, events }: GatedClaim, { now, expect }: Check): void {
    if (this.#isBlind) return;
    this.#remember({ kind: 'resource', name: resource }, events);
    const gate = this.#gates.get(`resource ${resource}`);
    expect(12, gate !== undefined || jobs.length === 0, () => `${resource} has no gate, but gave ${jobs.length} jobs`);
    for (const job of jobs) {
      expect(12, job.resource === resource && job.lane !== 'suspect', () => `${job.id} is not behind ${resource}`);
    }
    if (gate === undefined || jobs.length === 0) return;
    const { state } = gate;
    const phase = events.at(-1)?.to ?? state.phase;
    const what = (): string => `${resource} gave ${jobs.length} jobs while it was ${phase}`;
    expect(12, state.pin !== 'open', () => `${what()} and pinned open`);
    expect(12, state.heldUntil <= now, () => `${what()} and held until ${state.heldUntil}`);
    if (phase === 'open' && state.pin === null) this.#checkProbe(gate, resource, jobs, knows, now, expect);
    else {
      if (phase === 'ramp') checkRamp(gate, resource, jobs, now, expect);
      if (state.pin === null) chargeRetries(gate, resource, jobs, now, expect);
    }
  }

  #checkProbe(
    gate: Watched,
    resource: string,
    jobs: readonly ClaimedJob[],
    knows: GatedClaimRequest['knows'],
    now: number,
    expect: Check['expect'],
  ): void {
    const [job] = jobs;
    const known = knows?.get(job?.name as string) ?? 0;
    const isUnknown = knows !== undefined && known < (job?.version ?? 1);
    expect(12, jobs.length === 1, () => `${resource} is open, but gave ${jobs.length} jobs at once`);
    const isProbe = job?.gateEpoch !== 0;
    const whose = (): string => `${resource} gave ${job?.name} ${job?.version} to a worker that knows ${known}`;
    expect(12, isProbe !== isUnknown, () => `${whose()} as ${isProbe ? 'a probe' : 'no probe'}`);
    if (!isProbe) return;
    const { probe } = gate;
    const isBusy = probe !== null && now < probe.at + PROBE_SLOT_MS;
    expect(12, !isBusy, () => `${resource} gave a probe beside the one of ${probe?.at}`);
    gate.probe = { epoch: jobs[0]?.gateEpoch ?? 0, at: now };
  }

  checkReport(reports: readonly WorkerReport[], answers: readonly GateAnswer[], process: string, check: Check): void {
    const { now, expect } = check;
    for (const [index, { gate: ref, report }] of reports.entries()) {
      const answer = answers[index];
      expect(12, answer?.now === now, () => `a report was answered with the time ${answer?.now}`);
      this.#remember(ref, answer?.events ?? []);
      const gate = this.#gates.get(nameOf(ref));
      if (report === null || ref.kind !== 'resource') continue;
      if (gate?.probe?.epoch === report.epoch) gate.probe = null;
      if (gate?.ramp?.epoch === report.epoch) gate.ramp.starts += report.unstarted;
      if (gate !== undefined) {
        const tokens = Math.min(capOf(gate.state), tokensAt(gate, now) + PER_SUCCESS * report.firstSuccesses);
        gate.budget = { tokens: Math.max(-capOf(gate.state), tokens - report.retries), at: now };
      }
      this.#checkCharges(ref.name, process, JSON.stringify(report), report.retries, expect);
    }
  }

  /** A report that was sent again counts again; here it is known by what it says. */
  #checkCharges(resource: string, process: string, text: string, retries: number, expect: Check['expect']): void {
    const key = `${process} ${resource} ${text}`;
    if (retries === 0 || this.#reports.has(key)) return;
    this.#reports.add(key);
    add(this.#charged, resource, retries);
    const [charged, started] = [this.#charged.get(resource) ?? 0, this.#uncharged.get(resource) ?? 0];
    expect(12, charged <= started, () => `${charged} retries of ${resource} were charged, but ${started} had started`);
  }

  changed(ref: GateRef, { state, events }: GateAnswer): void {
    this.#remember(ref, events);
    const gate = this.#gates.get(nameOf(ref));
    // A reset fills the budget.
    if (gate !== undefined && state.budget.tokens > gate.budget.tokens) {
      gate.budget = { ...state.budget };
    }
  }

  #remember(ref: GateRef, events: readonly GateEvent[]): void {
    for (const { change, at } of events) {
      if (change !== 'opened') continue;
      this.#opened.set(nameOf(ref), [...(this.#opened.get(nameOf(ref)) ?? []), at]);
    }
  }
}

function nameOf({ kind, name }: GateRef): string {
  return `${kind} ${name}`;
}

/** Keys of one parent share their dependency. */
export function dependencyOf(resource: string | null): string {
  return resource === null ? 'network' : (resource.split('/')[0] as string);
}

function add(counts: Map<string, number>, name: string, count = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}

function capOf({ peak }: GateState): number {
  return (Math.max(1, 0.1 * peak.rate) + PER_SUCCESS * peak.rate) * BUDGET_SPAN_S;
}

function tokensAt({ budget, state }: Watched, now: number): number {
  const floor = Math.max(1, 0.1 * state.peak.rate);
  return Math.min(capOf(state), budget.tokens + (floor * Math.max(0, now - budget.at)) / 1_000);
}

function chargeRetries(
  gate: Watched,
  resource: string,
  jobs: readonly ClaimedJob[],
  now: number,
  expect: Check['expect'],
): void {
  const retries = jobs.filter(({ lane }) => lane === 'retry').length;
  const tokens = tokensAt(gate, now);
  expect(
    12,
    retries === 0 || retries <= tokens + SLACK,
    () => `${retries} retries of ${resource} started, but its budget paid for ${tokens}`,
  );
  gate.budget = { tokens: tokens - retries, at: now };
}

/** A ramp of the same epoch goes on; a new one begins with its burst. */
/** A larger peak has room for more, and that is there at once. */
function raised(before: Watched, state: GateState): Watched['budget'] {
  const more = Math.max(0, capOf(state) - capOf(before.state));
  return { ...before.budget, tokens: before.budget.tokens + more };
}

function rampOf(before: Watched['ramp'], state: GateState, now: number): Watched['ramp'] {
  if (before?.epoch === state.epoch) return before;
  return { epoch: state.epoch, starts: (state.ramp?.limit ?? 0) * BURST_S + 1, at: now };
}

function checkRamp(
  gate: Watched,
  resource: string,
  jobs: readonly ClaimedJob[],
  now: number,
  expect: Check['expect'],
): void {
  const limit = gate.state.ramp?.limit;
  // A ramp that began within this call is known from the next state on.
  if (limit === undefined || gate.ramp === null) return;
  const paid = Math.min(limit * BURST_S + 1, gate.ramp.starts + (limit * (now - gate.ramp.at)) / 1_000);
  expect(
    12,
    jobs.length <= paid + SLACK,
    () => `${jobs.length} jobs of ${resource} started in its ramp of ${limit}/s, which had paid for ${paid}`,
  );
  gate.ramp.starts = paid - jobs.length;
  gate.ramp.at = now;
}
