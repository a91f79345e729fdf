import { allPeers } from '../peers/index.ts';
import './cell.ts';
import './worker-process.ts';

/* Loads what the measured processes load, once, so that none of them has to turn TypeScript into JavaScript. */
await allPeers();
process.exit();
