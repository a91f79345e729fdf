/* The part of the simulator that the page uses, so that the build leaves the rest out. */
export { simulate } from '../../../src/simulate/index.ts';
