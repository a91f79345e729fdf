import { z } from 'zod';
import type { Clock } from '../../src/clock.ts';
import { type AnyJobDefinition, defineJob, Mulligan } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';

/*
 * A service that delivers webhooks: the receiver goes down in the middle of a rolling deploy.
 *
 *   0 s     two workers of the old deploy; ten deliveries are enqueued each second, until the end
 *   45 s    the new deploy: a worker of it starts, its producer enqueues, one old worker stops. The other stays beside it
 *           to the end, or stops too
 *   60 s    the receiver goes down, for 80 s
 *   140 s   the receiver is back
 *
 * The figures are those that a user waits for: when the first delivery arrives after the recovery, and when the last one
 * of those that the outage has held up. Time is that of the given clock, so the same runs in virtual and in real time.
 */

/** What the worker of the old deploy makes of a delivery of the new one. `none`: no old worker stays. */
export const besides = ['none', 'earlier version', 'unknown name', 'schema that rejects'] as const;
export type Beside = (typeof besides)[number];

export const gates = ['a gate and a limit per key', 'a gate without a key'] as const;
export type Gate = (typeof gates)[number];

export interface RollingDeploy {
  readonly clock: Clock;
  /** Lets the time pass. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Each Mulligan has a store of its own, as processes have. */
  readonly open: () => Promise<Store | string>;
  readonly gate: Gate;
  readonly beside: Beside;
}

export interface Seen {
  /** From the recovery to the first delivery. */
  readonly firstMs: number;
  /** Until everything was delivered that had been enqueued by the recovery. */
  readonly lastMs: number;
  /** Calls while the receiver was down. */
  readonly callsWhileDown: number;
  /** Runs that ended without a call, because a worker could not run the job. */
  readonly handedBack: number;
  readonly dead: number;
  readonly undelivered: number;
  readonly deliveredTwice: number;
}

const oldForm = z.strictObject({ n: z.number(), url: z.string() });
const newForm = z.strictObject({ n: z.number(), url: z.string(), form: z.literal('new').optional() });
type Delivery = z.infer<typeof newForm>;

const DEPLOY_MS = 45_000;
/** Long enough to prove a rate. */
const WARM_UP_MS = 60_000;
const DOWN_MS = 80_000;
const PER_SECOND = 10;
/** After the recovery arrivals go on for so long, and what is left then has as long again. */
const AFTER_MS = 60_000;
const STEP_MS = 100;
const CALL_MS = 20;
const RECEIVER = 'https://receiver.example/hook';

export async function rollingDeploy({ clock, sleep, open, gate, beside }: RollingDeploy): Promise<Seen> {
  const startedAt = clock.monotonic();
  const elapsed = (): number => clock.monotonic() - startedAt;
  const isDown = (): boolean => elapsed() >= WARM_UP_MS && elapsed() < WARM_UP_MS + DOWN_MS;
  const delivered = new Map<number, { times: number; at: number }>();
  let [callsWhileDown, handedBack, dead, next] = [0, 0, 0, 0];

  const run = async ({ n }: Delivery): Promise<void> => {
    if (isDown()) {
      callsWhileDown++;
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    }
    await new Promise<void>((resolve) => void clock.after(CALL_MS, resolve));
    delivered.set(n, { times: (delivered.get(n)?.times ?? 0) + 1, at: elapsed() });
  };
  const hostOf = ({ url }: Delivery): string => new URL(url).host;
  const behind =
    gate === 'a gate without a key'
      ? { resource: 'receiver' }
      : {
          resource: (delivery: Delivery): [string, string] => ['webhook', hostOf(delivery)],
          limit: { name: 'receivers', key: hostOf, concurrency: 5 },
        };
  const isOfForm = beside === 'schema that rejects';
  const older = defineJob<Delivery>({ name: 'deliver', ...behind, ...(isOfForm && { input: oldForm }), run });
  const newer = defineJob<Delivery>({
    name: beside === 'unknown name' ? 'deliver.signed' : 'deliver',
    ...behind,
    ...(isOfForm ? { input: newForm } : { version: 2, migrate: (old: Delivery) => ({ ...old, form: 'new' }) }),
    run,
  });

  const mulligans: Mulligan[] = [];
  async function deploy(jobs: readonly AnyJobDefinition[]): Promise<Mulligan> {
    const mulligan = await Mulligan.open(await open(), { clock, jobs, log: () => {} });
    mulligan.on('dead', () => void dead++);
    mulligan.on('released', () => void handedBack++);
    mulligans.push(mulligan);
    return mulligan;
  }
  async function close(mulligan: Mulligan): Promise<void> {
    let isClosed = false;
    const closing = mulligan.close({ grace: 0 }).then(() => {
      isClosed = true;
    });
    while (!isClosed) await sleep(STEP_MS);
    await closing;
  }
  const olds = [await deploy([older]), await deploy([older])] as const;
  for (const old of olds) old.work({ concurrency: 10 });

  let enqueue = (n: number): Promise<unknown> => olds[0].enqueue(older, { n, url: RECEIVER });
  let owed = 0;
  async function until(ms: number, perSecond = PER_SECOND): Promise<void> {
    while (elapsed() < ms) {
      owed += (perSecond * STEP_MS) / 1_000;
      for (; owed >= 1; owed--) await enqueue(next++);
      await sleep(STEP_MS);
    }
  }

  await until(DEPLOY_MS);
  const fresh = await deploy(beside === 'unknown name' ? [older, newer] : [newer]);
  fresh.work({ concurrency: 10 });
  enqueue = (n) => fresh.enqueue(newer, { n, url: RECEIVER, form: 'new' });
  await close(olds[0]);
  if (beside === 'none') await close(olds[1]);
  const upAt = WARM_UP_MS + DOWN_MS;
  await until(upAt);
  const enqueuedBefore = next;
  await until(upAt + AFTER_MS);
  while (delivered.size < next && elapsed() < upAt + 10 * AFTER_MS) await until(elapsed() + 1_000, 0);
  for (const mulligan of mulligans) await close(mulligan);

  const after = [...delivered.values()].filter(({ at }) => at >= upAt).map(({ at }) => at - upAt);
  const before = [...delivered].filter(([n]) => n < enqueuedBefore).map(([, { at }]) => at - upAt);
  return {
    firstMs: Math.min(...after),
    lastMs: Math.max(...before),
    callsWhileDown,
    handedBack,
    dead,
    undelivered: next - delivered.size,
    deliveredTwice: [...delivered.values()].filter(({ times }) => times > 1).length,
  };
}
