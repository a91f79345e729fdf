import { parseArgs } from 'node:util';
import { systemClock } from '../src/clock.ts';
import { checkInteger, checkOneOf } from '../src/config.ts';
import { type Engine, interleavedPostgres, memory, postgres, sqlite } from './engines.ts';
import { exhaust } from './exhaustive.ts';
import { randomScenario } from './scenario.ts';
import { type Simulated, simulate, simulateTwice } from './simulate.ts';

/*
 * npm run sim -- --seed 42                replay one seed with its trace
 * npm run sim -- --from 1 --count 1000    many seeds
 * npm run sim -- --minutes 30             seeds until the time is up
 * npm run sim -- --exhaustive             the small scope, every trouble
 * npm run sim -- --first                  stop at the first bad seed, and run each only once
 * Each with --engine memory | sqlite | postgres | postgres-interleaved; the last two with --postgres URL, or on a
 * server that is started for them.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string' },
    minutes: { type: 'string' },
    engine: { type: 'string', default: 'memory' },
    postgres: { type: 'string' },
    exhaustive: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
  },
});
const engineName = checkOneOf(
  values.engine,
  ['memory', 'sqlite', 'postgres', 'postgres-interleaved'] as const,
  '--engine',
);
const { engine, stop } = await openEngine();
const number = (text: string, flag: string): number => checkInteger(Number(text), flag, { min: 0 });

function explain({ scenario, scripted, engine, violations }: Simulated): void {
  const again =
    scripted === null ? `npm run sim -- --seed ${scenario.seed} --engine ${engine}` : JSON.stringify(scripted);
  console.log(`seed ${scenario.seed} on ${engine} broke ${violations.length} promises; again: ${again}`);
  console.log(JSON.stringify(scenario));
  for (const { guarantee, at, text } of violations.slice(0, 10))
    console.log(`  guarantee ${guarantee} at ${at}: ${text}`);
}

async function replay(seed: number): Promise<number> {
  const result = await simulateTwice(seed, engine);
  for (const line of result.history.trace()) console.log(line);
  explain(result);
  console.log(`trace ${result.history.hash()}, the same twice: ${result.replays}`);
  return result.violations.length + (result.replays ? 0 : 1);
}

async function simulateOnce(seed: number): Promise<Simulated & { readonly replays: boolean }> {
  return { ...(await simulate(randomScenario(seed), engine)), replays: true };
}

async function many(from: number, goOn: (done: number) => boolean): Promise<number> {
  const startedAt = systemClock.monotonic();
  let done = 0;
  let bad = 0;
  for (; goOn(done) && !(values.first && bad > 0); done++) {
    const result = values.first ? await simulateOnce(from + done) : await simulateTwice(from + done, engine);
    if (!result.replays) console.log(`seed ${from + done} on ${engine.name} does not replay`);
    if (result.violations.length > 0) explain(result);
    if (!result.replays || result.violations.length > 0) bad++;
    if ((done + 1) % 500 === 0) progress(done + 1, bad, startedAt);
  }
  progress(done, bad, startedAt);
  return bad;
}

function progress(done: number, bad: number, startedAt: number): void {
  const seconds = (systemClock.monotonic() - startedAt) / 1_000;
  console.log(
    `${done} seeds on ${engine.name}, each run ${values.first ? 'once' : 'twice'}, in ${seconds.toFixed(0)} s: ${bad} bad`,
  );
}

async function small(): Promise<number> {
  let done = 0;
  let bad = 0;
  for await (const result of exhaust(engine)) {
    done++;
    if (result.violations.length === 0) continue;
    bad++;
    explain(result);
  }
  console.log(`${done} runs of the small scope on ${engine.name}: ${bad} bad`);
  return bad;
}

async function main(): Promise<number> {
  if (values.seed !== undefined) return replay(number(values.seed, '--seed'));
  if (values.exhaustive) return small();
  const from = number(values.from, '--from');
  if (values.minutes !== undefined) {
    const until = systemClock.monotonic() + number(values.minutes, '--minutes') * 60_000;
    return many(from, () => systemClock.monotonic() < until);
  }
  const count = number(values.count ?? '1000', '--count');
  return many(from, (done) => done < count);
}

async function openEngine(): Promise<{ engine: Engine; stop: () => Promise<void> }> {
  const nothing = async (): Promise<void> => {};
  if (engineName === 'memory') return { engine: memory, stop: nothing };
  if (engineName === 'sqlite') return { engine: sqlite, stop: nothing };
  const onServer = engineName === 'postgres' ? postgres : interleavedPostgres;
  if (values.postgres !== undefined) return { engine: onServer(values.postgres), stop: nothing };
  const { PostgresServer } = await import('../test/support/postgres-server.ts');
  const server = await PostgresServer.start();
  return { engine: onServer(server.url), stop: () => server[Symbol.asyncDispose]() };
}

process.exitCode = (await main()) === 0 ? 0 : 1;
await stop();
