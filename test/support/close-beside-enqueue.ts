import { enqueueOne } from '../../src/store/conformance/builders.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';

/* A process that closes its store while an enqueue is under way, and then has nothing left to do. */

const store = await SqliteStore.open({ path: process.argv[2] as string });
const enqueued = enqueueOne(store);
await store.close();
const id = await enqueued;
process.send?.({ id, closed: true }, () => process.disconnect());
