import { describe, expect, it } from 'vitest';
import { ConnectionLimiter, FEWEST_CONNECTIONS, type Use } from './connection-limiter.ts';

/** Asks for so many connections. Answers how many were given at once, and what gives the first of them back. */
async function take(limiter: ConnectionLimiter, use: Use, count: number): Promise<{ given: (() => void)[] }> {
  const given: (() => void)[] = [];
  for (let n = 0; n < count; n++) void limiter.take(use).then((done) => given.push(done));
  await new Promise((resolve) => setImmediate(resolve));
  return { given };
}

describe.each([FEWEST_CONNECTIONS, 4, 10, 25])('of %i connections', (connections) => {
  it('statements get one at once while reads and transactions have all that they may have', async () => {
    const limiter = new ConnectionLimiter(connections);
    const reads = await take(limiter, 'read', 100);
    const transactions = await take(limiter, 'transaction', 100);
    const statements = await take(limiter, 'statement', 100);
    expect(reads.given.length).toBeGreaterThanOrEqual(1);
    expect(transactions.given.length).toBeGreaterThanOrEqual(1);
    expect(statements.given.length).toBeGreaterThanOrEqual(1);
    expect(reads.given.length + transactions.given.length + statements.given.length).toBe(connections);
  });

  it('statements may use all, and each that is given back goes on to a call that waits', async () => {
    const limiter = new ConnectionLimiter(connections);
    const statements = await take(limiter, 'statement', connections);
    expect(statements.given).toHaveLength(connections);
    const [read, transaction] = [await take(limiter, 'read', 2), await take(limiter, 'transaction', 2)];
    expect(read.given.length + transaction.given.length).toBe(0);
    for (const done of statements.given) done();
    await new Promise((resolve) => setImmediate(resolve));
    expect(read.given.length).toBeGreaterThanOrEqual(1);
    expect(transaction.given.length).toBeGreaterThanOrEqual(1);
    for (const done of [...read.given, ...transaction.given]) done();
    await new Promise((resolve) => setImmediate(resolve));
    expect(read.given.length + transaction.given.length).toBe(4);
  });
});
