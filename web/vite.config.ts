import { fileURLToPath } from 'node:url';
import { defineConfig, type UserConfig } from 'vite';

const config: UserConfig = defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // Relative addresses: the dashboard may be mounted anywhere.
  base: './',
  resolve: { alias: { croner: fileURLToPath(new URL('without-cron.ts', import.meta.url)) } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // The content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
  // `vite` for work on the pages: the API is that of `mulligan serve`.
  server: { proxy: { '/api': 'http://127.0.0.1:8833' } },
});
export default config;
