import { type Drained, drain } from '../harness/drain.ts';
import { mostAtOnce } from '../harness/limits.ts';
import { rotate } from '../harness/measure.ts';
import type { Kind, LimitGuard, Peer } from '../harness/peer.ts';
import { CONCURRENCY, type Metric, type Stage, type Workload } from '../harness/workload.ts';

const KEYS = 1_000;
const AT_ONCE = 2;
const NEVER_BINDS = 1_000_000;
/**
 * Of all workers together where a limit binds. With a hundred places a fair queue takes each job of another key, and no key is
 * ever full, however long the jobs take. With more places than the limits let run, each claim takes all that they let start.
 */
const PLACES = 2 * KEYS * AT_ONCE;

interface Variant {
  readonly key: string;
  readonly title: string;
  readonly kind: Kind;
  readonly limit?: LimitGuard;
}

const perKey: LimitGuard = { keys: KEYS, concurrency: AT_ONCE };
const variants: readonly Variant[] = [
  { key: 'none', title: 'no limit', kind: 'noop' },
  { key: 'wide', title: 'one that never binds', kind: 'noop', limit: { keys: KEYS, concurrency: NEVER_BINDS } },
  { key: 'work', title: '20 ms, no limit', kind: 'work' },
  { key: 'keys', title: '20 ms, per key', kind: 'work', limit: perKey },
  { key: 'all', title: '20 ms, all together', kind: 'work', limit: { keys: null, concurrency: KEYS * AT_ONCE } },
];
const crews = [
  { key: 'one', title: 'one process', processes: 1 },
  { key: 'two', title: 'two processes', processes: 2 },
];

export const w16: Workload = {
  id: 'W16',
  title: 'Limits',
  what:
    `Drains as in W2, with jobs of ${KEYS.toLocaleString('en')} keys in no order. 200,000 jobs that do nothing, ${CONCURRENCY} places per process: without a limit, and with ` +
    `one per key that never binds, as a ratio to the former in the same round. Jobs that take 20 ms, ${PLACES.toLocaleString('en')} places in all: without a limit, ` +
    `with one of ${AT_ONCE} per key, and with one of ${(KEYS * AT_ONCE).toLocaleString('en')} for all jobs together; both bind at each claim. The variants take turns. ` +
    'Checked: each job ran exactly once, and never more at once than a limit allows where the queue promises that.',
  peers: [
    ...['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres', 'pg-boss-tuned'],
    ...['bullmq-redis-everysec', 'bullmq-redis-always', 'bullmq-postgres'],
  ],
  ownRounds: true,
  mostRounds: 3,
  notQuick: 'it is W2, five times',
  metrics: [
    ...crews.flatMap((crew) =>
      variants.map((variant): Metric => {
        const title = `${variant.title}, ${crew.title}`;
        return {
          key: `${variant.key}-${crew.key}`,
          title,
          unit: variant.key === 'wide' ? 'x' : '/s',
          better: 'higher',
        };
      }),
    ),
    { key: 'work-most', title: 'of one key at once, no limit', unit: '', better: 'neither' },
    { key: 'keys-most', title: 'of one key at once, per key', unit: '', better: 'lower' },
    { key: 'all-most', title: 'at once, all together', unit: '', better: 'lower' },
  ],
  async run(stage) {
    if (!hasKeys(stage.peer)) stage.note('it has no limit per key; the one that never binds is for all jobs together');
    const rounds = Math.min(stage.rounds, stage.peer.mostRounds ?? stage.rounds);
    for (let round = 0; round < rounds; round++) {
      for (const crew of crews.filter(({ processes }) => processes === 1 || !stage.peer.inProcess)) {
        const rates = new Map<string, number>();
        for (const given of rotate(variants, round)) {
          const variant = offered(given, stage.peer);
          if (variant === null) continue;
          stage.say(`round ${round + 1}, ${crew.title}: ${variant.title}`);
          const { perSecond, spans } = await drainOnce(stage, variant, crew.processes);
          rates.set(variant.key, perSecond);
          if (variant.kind === 'work') judge(stage, variant, mostAtOnce(spans, variant.limit ?? perKey));
        }
        const none = rates.get('none') as number;
        for (const [key, rate] of rates) stage.set(`${key}-${crew.key}`, key === 'wide' ? rate / none : rate);
      }
    }
  },
};

function hasKeys({ limits }: Peer): boolean {
  return limits?.perKey === true;
}

/** As the queue can run it: one without limits per key has only the others. */
function offered(variant: Variant, peer: Peer): Variant | null {
  if (hasKeys(peer) || variant.limit === undefined) return variant;
  return variant.key === 'keys' ? null : { ...variant, limit: { ...variant.limit, keys: null } };
}

async function drainOnce(stage: Stage, { key, kind, limit }: Variant, processes: number): Promise<Drained> {
  const part = stage.guarded(limit);
  const places = kind === 'work' ? { concurrency: PLACES / processes } : {};
  // Jobs that do nothing are done in a second, in which a new process is still compiling its own code: so there are more of them.
  const sizes = { count: stage.size(kind === 'noop' ? 200_000 : 50_000, 3_000), capMs: stage.size(30_000, 3_000) };
  const drained = await drain(part, await part.open(), { ...sizes, ...places, kind, processes });
  await part.close();
  for (const note of part.notes) stage.note(`${key}, processes ${processes}: ${note}`);
  return drained;
}

function judge(stage: Stage, { key, limit }: Variant, most: number): void {
  stage.set(`${key}-most`, most);
  if (limit === undefined || most <= limit.concurrency) return;
  const text = `${most} jobs ran at once where ${limit.concurrency} may`;
  if (stage.peer.limits?.strict) throw new Error(`wrong: ${text}`);
  stage.note(`${key}: ${text}`);
}
