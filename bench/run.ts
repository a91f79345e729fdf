import { parseArgs } from 'node:util';
import { compileOnce, installOnce } from './install.ts';

const help = `npm run bench [-- OPTIONS]

  --workload W   W1 enqueue, W2 drain, W3 retry churn, W4 pickup, W5 starvation, W6 growth, W6b churn, W7 crash,
                 W8 curves (W8a claim time, W8b memory, W8c processes, W8d locks), W9 cost, W10 partitions,
                 W11 retry storm, W12 healthy gates, W13 shut gate, W14 many gates,
                 W15 error groups, W16 limits, W17 large tenant, W18 many keys; several with commas. Default: all
  --peer P       a queue, or the beginning of its name: mulligan, raw, pg-boss, graphile, bullmq; several with commas.
                 Nothing is written then. Default: all
  --without P    leaves these queues out, and names them in the results; without Mulligan or a raw limit nothing is written
  --rounds N     default 5; 1 in a quick run
  --quick        small sizes, at most three minutes; says whether it works, not how fast it is
  --json         the results as JSON on standard output (with npm run -s: npm itself writes there too)
  --check        only Mulligan and the raw limits; fails when a ratio is worse than the stored one.
                 With --quick it shows that the check works, and no more: ratios of short drains are noise
  --tolerance T  by how much it may be worse: 0.3 by default
  --against REV  builds the commit REV and runs it and the working tree in turn; prints medians and ratios, stores nothing
  --store S      with --against: sqlite, postgres or memory; several with commas. Default: sqlite,postgres
  --report       writes docs/benchmarks.md again from the stored results
`;

try {
  const { values } = parseArgs({
    options: {
      workload: { type: 'string', multiple: true },
      peer: { type: 'string', multiple: true },
      without: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      tolerance: { type: 'string' },
      against: { type: 'string' },
      store: { type: 'string', multiple: true },
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      report: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) console.log(help);
  else {
    installOnce();
    compileOnce();
    const { main } = await import('./main.ts');
    // Not process.exitCode: the package that runs PostgreSQL hooks the end of the process, and would answer 0.
    process.exit(await main(values));
  }
} catch (error) {
  const said = error instanceof Error ? error.message : String(error);
  const isUsage = (error as { code?: unknown }).code?.toString().startsWith('ERR_PARSE_ARGS');
  console.error(isUsage ? `${said.split(/\.?\n/)[0]}. npm run bench -- --help shows what there is.` : said);
  process.exit(2);
}
