import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

// The tests start many threads and processes on the sources; each would strip their types anew.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url));

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    // Many tests wait for processes of their own; the default would leave one of two cores idle.
    maxWorkers: 2,
    // Only to end what hangs: a loaded machine must not fail a test.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    globalSetup: ['test/support/postgres-setup.ts'],
  },
});
export default config;
