import { allPeers, peerById } from '../peers/index.ts';
import './cell.ts';
import './worker-process.ts';

/*
 * Loads what the measured processes load, once, so that none of them has to turn TypeScript into JavaScript: all peers, or
 * those that are named.
 */
const named = process.argv.slice(2);
await (named.length === 0 ? allPeers() : Promise.all(named.map(peerById)));
process.exit();
