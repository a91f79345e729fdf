export { drizzleTx, knexTx, kyselyTx, prismaTx } from './adapters.ts';
export type { PoolClientLike, PoolLike } from './driver.ts';
export { type PostgresOptions, PostgresStore } from './store.ts';
