import type { Mistake } from './mistake.ts';

/** A mistake that the simulation must notice. */
export interface Mutant extends Mistake {
  readonly engine?: 'memory' | 'sqlite';
  /** The seed to begin with, where those before notice nothing. */
  readonly from?: number;
}

export const mutants: readonly Mutant[] = [
  // The store: fences
  {
    name: 'any run may settle',
    file: 'store/memory/state.ts',
    find: 'row.runs !== fence.run || row.lease.worker !== fence.worker',
    replace: 'false',
  },
  {
    name: 'a rescuer ends runs whose lease still lasts',
    file: 'store/memory/settle.ts',
    find: "if (settlement.outcome === 'crashed' && row.lease.endsAt > now) return 'stale';",
    replace: '',
  },
  {
    name: 'expired leases are found too early',
    file: 'store/memory/expired.ts',
    find: 'endsAt <= now',
    replace: 'endsAt <= now + 1_000',
  },
  {
    name: 'a repeated settlement is called stale',
    file: 'store/memory/settle.ts',
    find: "return wasSettled(state, settlement) ? 'settled' : 'stale';",
    replace: "return 'stale';",
  },
  {
    name: 'one stale row stops its batch',
    file: 'store/memory/settle.ts',
    find: 'return settlements.map((settlement) => {',
    replace:
      "const broken = settlements.some((one) => !state.held(one) && !wasSettled(state, one));\n  return settlements.map((settlement) => {\n    if (broken) return 'stale';",
  },
  // The store: counting
  {
    name: 'attempts are not counted at the claim',
    file: 'store/memory/claim.ts',
    find: 'attempts: row.attempts + 1,',
    replace: 'attempts: row.attempts,',
  },
  {
    name: 'an attempt is given back twice',
    file: 'store/memory/settle.ts',
    find: 'row.attempts - (settled.counted ? 0 : 1)',
    replace: 'row.attempts - (settled.counted ? 0 : 2)',
  },
  {
    name: 'attempts are never given back',
    file: 'store/memory/settle.ts',
    find: 'row.attempts - (settled.counted ? 0 : 1)',
    replace: 'row.attempts',
  },
  {
    name: 'a crash is not counted',
    file: 'store/memory/settle.ts',
    find: "(outcome === 'crashed' ? 1 : 0)",
    replace: '0',
  },
  // The store: error groups
  {
    name: 'a job that completes stays in its error group',
    file: 'store/error-groups.ts',
    find: '(isSame ? 1 : 0)',
    replace: "(isSame && state !== 'completed' ? 1 : 0)",
  },
  {
    name: 'a redriven job still counts as dead in its error group',
    file: 'store/memory/change.ts',
    find: 'state.errorGroups.move(row, REDRIVEN);',
    replace: '',
  },
  {
    name: 'a later failure of a redriven job counts as a recurrence',
    file: 'store/error-groups.ts',
    find: "counts.recurred = lane === 'redrive' ? 1 : 0;",
    replace: 'counts.recurred = 1;',
  },
  {
    name: 'a new fingerprint is not kept with the job',
    file: 'store/sqlite/settle.ts',
    find: 'const isNewKind = failure !== null && failure !== row.fingerprint;',
    replace: 'const isNewKind = false;',
    engine: 'sqlite',
  },
  // The store: order and shares
  {
    name: 'jobs are claimed before they are due',
    file: 'store/memory/partitions.ts',
    find: 'first !== undefined && first.dueAt <= now ? first',
    replace: 'first !== undefined && first.dueAt <= now + 400 ? first',
  },
  {
    name: 'priorities are ignored',
    file: 'store/memory/partitions.ts',
    find: '.sort((a, b) => a - b)',
    replace: '',
  },
  {
    name: 'retries are served before fresh work, whatever the share',
    file: 'store/fill.ts',
    find: "this.#left.retry -= draw('retry', this.#left.retry);",
    replace: "this.#left.retry -= draw('retry', left);",
  },
  {
    name: 'maxRetriesInFlight is ignored',
    file: 'store/memory/claim.ts',
    find: 'Math.min(count, this.#room(queue, lane), this.#admission[pays])',
    replace: 'Math.min(count, this.#admission[pays])',
  },
  {
    name: 'a claim leaves places empty that retries could have',
    file: 'store/fill.ts',
    find: "    draw('fresh', left);\n    draw('retry', left);\n",
    replace: "    draw('fresh', left);\n",
  },
  // The store: jobs aside
  {
    name: 'a worker claims jobs aside whose version it does not have',
    file: 'store/aside.ts',
    find: 'known !== undefined && known >= version &&',
    replace: 'known !== undefined &&',
  },
  {
    name: 'a worker claims rejected payloads that it avoids',
    file: 'store/aside.ts',
    find: ' && !(isRejected && avoids?.has(name))',
    replace: '',
  },
  {
    name: 'claims do not find jobs aside',
    file: 'store/aside.ts',
    find: 'return known !== undefined && known >= version',
    replace: 'return known === undefined && version > 0',
  },
  {
    name: 'a retry of a job that was aside is hidden from others',
    file: 'store/memory/settle.ts',
    find: 'aside: asideAfter(decision),',
    replace: 'aside: asideAfter(decision) ?? row.aside,',
  },
  {
    name: 'claims do not find jobs aside in a file',
    engine: 'sqlite',
    file: 'store/sqlite/aside.ts',
    find: 'session.sql(ADD).run(queue, own);',
    replace: '',
  },
  // The store: partitions
  {
    name: 'jobs of a held resource are claimed',
    file: 'store/memory/partitions.ts',
    find: 'return resource === null ? ofQueue : Math.max(ofQueue,',
    replace: 'return resource !== undefined ? ofQueue : Math.max(ofQueue,',
  },
  {
    name: 'a hold does not end by itself',
    file: 'store/memory/partitions.ts',
    find: 'if (this.#heldUntil(partition) > now) return false;',
    replace: 'if (this.#heldUntil(partition) > 0) return false;',
  },
  {
    name: 'a release of a resource is lost',
    file: 'store/memory/partitions.ts',
    find: 'return this.#holds.delete(keyOf(target));',
    replace: "return 'queue' in target && this.#holds.delete(keyOf(target));",
  },
  {
    name: 'a partition is forgotten when its first job leaves',
    file: 'store/memory/partitions.ts',
    find: 'if (partition?.isEmpty) partitions',
    replace: 'if (partition) partitions',
  },
  {
    name: 'a suspect starts beside another one of its queue',
    file: 'store/memory/claim.ts',
    find: 'running.suspects(queue) === 0 && ',
    replace: '',
  },
  // The store: keys, cancels, operators
  {
    name: 'a taken key is taken again',
    file: 'store/memory/enqueue.ts',
    find: 'if (holder) {',
    replace: 'if (holder && job.debounce) {',
  },
  {
    name: 'a key is freed as soon as its job runs',
    file: 'store/memory/keys.ts',
    find: "row.state === 'running' && row.keyLife === 'started'",
    replace: "row.state === 'running'",
  },
  {
    name: 'a cancel that comes late is lost',
    file: 'job.ts',
    find: 'cancelRequested && settled.dueAt !== null',
    replace: 'false',
    from: 100,
  },
  {
    name: 'a cancel that overrules a decision is not reported',
    file: 'store/memory/settle.ts',
    find: "settled.overruled ? 'cancelled' : 'settled'",
    replace: "'settled'",
    from: 100,
  },
  {
    name: 'an enqueue that is sent again is stored again',
    file: 'store/memory/enqueue.ts',
    find: 'if (state.rows.has(job.id)) return { id: job.id, existed: false };',
    replace: '',
  },
  // The core
  {
    name: 'jitter goes above the cap',
    file: 'retry/jitter.ts',
    find: 'return between(0, delayMs, random);',
    replace: 'return between(0, 2 * delayMs, random);',
  },
  {
    name: 'one attempt more than the cap',
    file: 'retry/decide.ts',
    find: 'return attempts >= policy.maxAttempts;',
    replace: 'return attempts > policy.maxAttempts;',
  },
  {
    name: 'poison is buried one crash late',
    file: 'retry/decide.ts',
    find: 'if (crashes < policy.maxCrashes) return false;',
    replace: 'if (crashes <= policy.maxCrashes) return false;',
  },
  {
    name: 'a suspect that crashed beside others is buried',
    file: 'retry/decide.ts',
    find: "return lane !== 'suspect' || alone ||",
    replace: "return lane !== 'suspect' || !alone ||",
  },
  {
    name: 'a Retry-After is shortened',
    file: 'retry/decide.ts',
    find: 'return askedMs >= ownMs ?',
    replace: 'return askedMs < ownMs ?',
  },
  {
    name: 'suspects stay among the others',
    file: 'retry/decide.ts',
    find: "? 'suspect' : 'retry'",
    replace: "? 'retry' : 'retry'",
  },
  {
    name: 'Unrecoverable is retried',
    file: 'retry/decide.ts',
    find: "if (failure.class === 'permanent') return",
    replace: 'if (false) return',
  },
  // The worker
  {
    name: 'an outcome that was not recorded is not sent again',
    file: 'worker/persist.ts',
    find: 'return true;\n      },\n      leftMs',
    replace: 'return false;\n      },\n      leftMs',
  },
  {
    name: 'heartbeats are not sent',
    file: 'worker/heartbeat.ts',
    find: '      this.start();\n      this.#renewAll();',
    replace: '      this.start();',
  },
  {
    name: 'expired leases are not rescued',
    file: 'worker/rescue.ts',
    find: 'if (expired.length === 0) return;',
    replace: 'if (expired.length >= 0) return;',
  },
  {
    name: 'a late claim is started although its lease has ended',
    file: 'worker/worker.ts',
    find: 'else if (job.lease.ended) this.#release',
    replace: 'else if (false) this.#release',
  },
  {
    name: 'stored results of once are never looked up',
    file: 'worker/once.ts',
    find: 'if (this.#lease.job.run === 1)',
    replace: 'if (this.#lease.job.run >= 1)',
  },
  {
    name: 'a call that hangs hangs the fetcher',
    file: 'worker/fetch.ts',
    find: 'await answerWithin(clock, callTimeoutMs, call)',
    replace: 'await call',
  },
  {
    name: 'suspects are never claimed',
    file: 'worker/lanes.ts',
    find: 'share: 1, suspect: 1',
    replace: 'share: 1, suspect: 0',
  },
  // Gates: what may start
  {
    name: 'an ordinary claim takes jobs behind a gate',
    file: 'store/memory/partitions.ts',
    find: 'return !gated && at !== null && at <= now;',
    replace: 'return at !== null && at <= now;',
  },
  {
    name: 'a probe takes no slot',
    file: 'gate/probe.ts',
    find: 'slotUntil: now + PROBE_SLOT_MS',
    replace: 'slotUntil: now',
  },
  {
    name: 'an open gate gives more than its probe',
    file: 'store/memory/claim.ts',
    find: '? claiming.probe((ids) => pickProbe(admission.state.probes, ids, random), admission.epoch)',
    replace: '? claiming.admitted({ fresh: 3, retry: 3, epoch: admission.epoch })',
  },
  {
    name: 'a gate that is pinned open admits jobs',
    file: 'gate/admit.ts',
    find: "if (state.pin !== null) return state.pin === 'open' ? Number.POSITIVE_INFINITY : now;",
    replace: '',
  },
  {
    name: 'a hold by Retry-After admits jobs',
    file: 'gate/admit.ts',
    find: 'const from = Math.max(now, state.heldUntil);',
    replace: 'const from = now;',
  },
  {
    name: 'a ramp ignores its rate',
    file: 'gate/admit.ts',
    find: 'const starts = Math.min(asked, tokensOf(ramp.tat, ramp.limit, RAMP_BURST_MS, now));',
    replace: 'const starts = asked;',
  },
  {
    name: 'what a gate has admitted is not stored',
    file: 'store/memory/claim.ts',
    find: 'state.gates.write({ gate, state: admission.state, events: admission.events }, now);',
    replace: 'state.gates.write({ gate, state: stored, events: admission.events }, now);',
  },
  {
    name: 'suspects wait for a gate that no probe can close',
    file: 'gate/access.ts',
    find: "at: state.phase === 'open' ? freshAt : state.heldUntil",
    replace: "at: state.phase === 'open' ? null : state.heldUntil",
  },
  {
    name: 'a worker never asks a gate for jobs',
    file: 'worker/fetch.ts',
    find: 'this.#gated = claim.gated;',
    replace: '',
  },
  // Gates: the retry budget
  {
    name: 'reports charge no retries',
    file: 'gate/gate.ts',
    find: 'report.retries, peak, now);',
    replace: '0, peak, now);',
  },
  {
    name: 'retries start though the budget is low',
    file: 'gate/access.ts',
    find: 'retry: isGated || isLow ?',
    replace: 'retry: isGated ?',
  },
  {
    name: 'a retry is charged by its claim and by its report',
    file: 'gate/admit.ts',
    find: 'epoch: Math.max(1, state.epoch)',
    replace: 'epoch: ramp === null ? 0 : state.epoch',
  },
  // Gates: refunds
  {
    name: 'attempts are given back again and again',
    file: 'gate/refund.ts',
    find: 'return { attempts: spent.count, spent: null };',
    replace: 'return { attempts: spent.count, spent };',
  },
  {
    name: 'attempts are given back without an outage',
    file: 'gate/refund.ts',
    find: 'return covered.some(([from, until]) => at >= from && at <= until);',
    replace: 'return covered.length >= 0 && at > 0;',
  },
  {
    name: 'a store gives back twice what a settlement says',
    file: 'store/memory/settle.ts',
    find: '(settled.counted ? 0 : 1) - (refund?.attempts ?? 0)',
    replace: '(settled.counted ? 0 : 1) - 2 * (refund?.attempts ?? 0)',
  },
  {
    name: 'a store forgets the note of a settlement',
    file: 'store/memory/settle.ts',
    find: 'spent: refund === undefined ? row.spent : refund.spent,',
    replace: 'spent: row.spent,',
  },
  {
    name: "a failure by the job's own fault is blamed on its dependency",
    file: 'gate/evidence.ts',
    find: "if (failureClass !== 'environment') return 'alive';",
    replace: "if (failureClass !== 'environment') return 'environment';",
  },
  {
    name: 'a job runs once more after its last attempt has waited for the verdict',
    file: 'worker/worker.ts',
    find: 'else if (lease.job.attempts > lease.job.policy.maxAttempts) {',
    replace: 'else if (lease.job.attempts < 0) {',
  },
  {
    name: 'a job starts though its lease has ended while its gate was asked',
    file: 'worker/worker.ts',
    find: "if (lease.ended) this.#end(job, { kind: 'released', because: { kind: 'late' } });",
    replace: "if (lease.lost) this.#end(job, { kind: 'released', because: { kind: 'late' } });",
  },
  // SQLite
  {
    name: 'SQLite: a cancel that comes late is lost',
    file: 'store/sqlite/settle.ts',
    find: ' AND cancel_requested = 0`',
    replace: '`',
    engine: 'sqlite',
    from: 160,
  },
  {
    name: 'SQLite: a crash is believed while the lease lasts',
    file: 'store/sqlite/settle.ts',
    find: 'AND (?5 IS NULL OR lease_ends_at <= ?5)',
    replace: 'AND (?5 IS NULL OR ?5 > 0)',
    engine: 'sqlite',
    from: 105,
  },
  {
    name: 'SQLite: an attempt is given back twice',
    file: 'store/sqlite/settle.ts',
    find: 'max(0, attempts - ?6), crashes = crashes + ?8,\n    due_at',
    replace: 'max(0, attempts - 2 * ?6), crashes = crashes + ?8,\n    due_at',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: heartbeats ignore the run',
    file: 'store/sqlite/heartbeat.ts',
    find: ' AND runs = ?2 AND worker = ?3\n  RETURNING',
    replace: ' AND ?2 > 0 AND worker = ?3\n  RETURNING',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: keys are not unique',
    file: 'store/sqlite/schema.ts',
    find: 'CREATE UNIQUE INDEX jobs_held_key',
    replace: 'CREATE INDEX jobs_held_key',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: the newest job is served first',
    file: 'store/sqlite/taken-rows.ts',
    find: 'ORDER BY due_at, seq LIMIT +?`',
    replace: 'ORDER BY due_at DESC, seq DESC LIMIT +?`',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a new partition of a held resource is claimed from',
    file: 'store/sqlite/partitions.ts',
    find: 'const restriction = found ?? restrictionsOf(this.#session, resource)(lane);',
    replace: 'const restriction = found ?? { heldUntil: 0, gateAt: null };',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a held queue is claimed from',
    file: 'store/sqlite/partitions.ts',
    find: "const queueHeldUntil = heldUntil(this.#session, 'queue', heldBy);",
    replace: 'const queueHeldUntil = 0;',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a release of a resource lets nothing start',
    file: 'store/sqlite/partitions.ts',
    find: 'const admissibleAt = startsAt > now ? startsAt : Math.min(row.admissibleAt, now);',
    replace: 'const admissibleAt = Math.max(startsAt, row.admissibleAt);',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a partition is removed while jobs wait in it',
    file: 'store/sqlite/partitions.ts',
    find: 'if (startsAt === null) this.#session.sql(REMOVE).run(id);\n      else if',
    replace: 'this.#session.sql(REMOVE).run(id);\n      if',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a suspect starts beside another one of its queue',
    file: 'store/sqlite/claimed-queues.ts',
    find: "if (lane === 'suspect') return suspects > 0 ? 0 :",
    replace: "if (lane === 'suspect') return",
    engine: 'sqlite',
  },
  {
    name: 'SQLite: partitions do not learn of a gate that has changed',
    file: 'store/sqlite/gates.ts',
    find: 'if (access !== before) session.partitions.restrict(name);',
    replace: '',
    engine: 'sqlite',
  },
  {
    name: 'SQLite: a settlement gives back twice what it says',
    file: 'store/sqlite/settle.ts',
    find: '+ (settlement.refund?.attempts ?? 0);',
    replace: '+ 2 * (settlement.refund?.attempts ?? 0);',
    engine: 'sqlite',
  },
  // Schedules
  {
    name: 'a tick is fired from a version that another worker has moved on',
    file: 'store/memory/schedules.ts',
    find: 'version !== from && version !== (to?.version ?? null)',
    replace: 'to === undefined',
  },
  {
    name: 'of several ticks that are due, only the first gets a job',
    file: 'schedule/plan.ts',
    find: ': [nextAt, ...lastTicks(timing, nextAt, now, MOST_AT_ONCE)]',
    replace: ': [nextAt]',
  },
  {
    name: 'a tick that is due is passed without a job when a schedule is resumed',
    file: 'schedules.ts',
    find: 'before.paused ? { ...before, paused: false,',
    replace: 'before !== null ? { ...before, paused: false,',
  },
  {
    name: 'ticks are fired too early',
    file: 'worker/schedules.ts',
    find: 'nextAt: schedule.nextAt as number }, now)',
    replace: 'nextAt: schedule.nextAt as number }, now + 1_000)',
  },
];
