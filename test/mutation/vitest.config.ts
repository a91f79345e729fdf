import { defineConfig, type ViteUserConfig } from 'vitest/config';

/** The tests that StrykerJS asks: those that need no server, no process of their own and no `process.chdir`. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: [
      'src/*.test.ts',
      'src/{observe,retry,testing,untrusted,worker}/**/*.test.ts',
      'src/store/{expiry,fill,totals}.test.ts',
      'src/store/memory/*.test.ts',
      'test/fuzz/retry.test.ts',
    ],
    // Only to end what hangs: mutants that hang are ended by StrykerJS.
    testTimeout: 60_000,
  },
});
export default config;
