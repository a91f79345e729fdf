/** For tests: of your own jobs, and of your own store. */
export {
  type ConformanceCase,
  type ConformanceOptions,
  type OpenStore,
  type StoreHarness,
  storeConformance,
} from '../store/conformance/index.ts';
export { MemoryStore, type MemoryStoreOptions } from '../store/memory/store.ts';
export { type TestQueue, type TestQueueOptions, testQueue } from './queue.ts';
export { VirtualClock, type VirtualClockOptions } from './virtual-clock.ts';
