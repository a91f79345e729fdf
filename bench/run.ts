import { parseArgs } from 'node:util';
import { installOnce } from './install.ts';

const { values: given } = parseArgs({
  options: {
    workload: { type: 'string', multiple: true },
    peer: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

installOnce();
const { main } = await import('./main.ts');
process.exitCode = await main(given);
