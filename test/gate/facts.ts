import { emptyReport, type GateReport } from '../../src/gate/evidence.ts';
import {
  type AdmitRequest,
  admit,
  applyReport,
  closedGate,
  type GateEvent,
  type GateState,
} from '../../src/gate/index.ts';
import { type JobBits, jobBit, join, noJobs } from '../../src/gate/sets.ts';

/** Facts for tests of the gates, with the defaults that most of them share. */

export const T0 = 1_700_000_000_000;
export const steady = (): number => 0.5;

/** `count` jobs with different bits. */
export function jobs(count: number): JobBits {
  let bits = noJobs;
  for (let place = 0; place < count; place++)
    bits = join(bits, place < 32 ? [(1 << place) >>> 0, 0] : [0, (1 << (place - 32)) >>> 0]);
  return bits;
}

export function report(facts: Partial<GateReport> = {}): GateReport {
  const environment = facts.environment ?? 0;
  const tail = environment;
  const asks = (facts.throttled ?? 0) + (facts.retryAfterMs ? environment : 0);
  return { ...emptyReport(1, 0, T0 + 1e9, 1), jobs: jobs(environment), tail, asks, ...facts };
}

/** One gate and its time. */
export class Gate {
  state: GateState;
  now: number = T0;
  events: GateEvent[] = [];

  constructor(state: GateState = closedGate(T0)) {
    this.state = state;
  }

  wait(ms: number): this {
    this.now += ms;
    return this;
  }

  /** A report on runs of the present epoch. */
  report(facts: Partial<GateReport>): this {
    const epoch = this.state.phase === 'closed' ? 0 : this.state.epoch;
    const { state, events } = applyReport(
      this.state,
      report({ epoch, claimedFrom: this.now, ...facts }),
      this.now,
      steady,
    );
    this.state = state;
    this.events.push(...events);
    return this;
  }

  /** How many start. */
  admit(facts: Partial<AdmitRequest> = {}): number {
    const request: AdmitRequest = { worker: 1, places: 1_000, due: 1_000, pays: 'nothing', ...facts };
    const { state, starts, events } = admit(this.state, request, this.now, steady);
    this.state = state;
    this.events.push(...events);
    return starts;
  }

  /** Signs of life at a rate for some seconds, as workers send them. */
  serve(perSecond: number, seconds: number): this {
    for (let second = 0; second < seconds; second += 5) {
      this.wait(5_000).report({ alive: perSecond * 5, firstSuccesses: perSecond * 5, spanMs: 5_000 });
    }
    return this;
  }

  trip(): this {
    return this.report({ environment: 10 });
  }

  /** Trips the gate and brings it back to a ramp by three probes. */
  ramp(): this {
    this.trip().wait(2_000);
    for (let probe = 0; probe < 3; probe++) {
      this.admit();
      this.report({ alive: 1 });
    }
    return this;
  }

  get rules(): string[] {
    return this.events.map(({ change, rule }) => `${change}: ${rule}`);
  }
}

export function jobsOf(...ids: string[]): JobBits {
  return ids.map(jobBit).reduce(join, noJobs);
}
