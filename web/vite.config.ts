import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin, type UserConfig } from 'vite';

/**
 * uPlot makes a number format of the browser's language when it is loaded. For a language that Intl does not know, such as
 * en-US@posix, that throws, and no page is drawn. The charts write their figures themselves, so any language does.
 */
const languageOfCharts: Plugin = {
  name: 'language-of-charts',
  transform(code, id) {
    if (!id.includes('/uplot/') || !/\.m?js$/.test(id)) return null;
    const own = "new Intl.NumberFormat(domEnv ? nav.language : 'en-US')";
    if (!code.includes(own))
      throw new Error(`expected ${own} in ${id}, got another version of uPlot. Look for its language.`);
    return { code: code.replace(own, "new Intl.NumberFormat('en-GB')"), map: null };
  },
};

function file(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

const config: UserConfig = defineConfig({
  root: file('.'),
  // Relative addresses: the dashboard may be mounted anywhere.
  base: './',
  resolve: {
    alias: [
      { find: 'croner', replacement: file('without-cron.ts') },
      { find: /^.*\/foreign-options\.ts$/, replacement: file('without-foreign-options.ts') },
      { find: /^.*\/scrub\.ts$/, replacement: file('without-scrub.ts') },
    ],
  },
  plugins: [languageOfCharts],
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
