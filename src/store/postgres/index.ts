export type { PoolClientLike, PoolLike } from './connection/driver.ts';
export { type PostgresOptions, PostgresStore } from './store.ts';
export { drizzleTx, knexTx, kyselyTx, prismaTx } from './transactions/adapters.ts';
