import { pickProbe } from '../gate/index.ts';
import type { Probes } from '../gate/probe.ts';
import type { Random } from '../retry/jitter.ts';
import type { KnownJobs } from '../store/aside.ts';
import type { Candidate } from './offer.ts';

/** The job that becomes the probe of an open gate, among those that the worker can run; null when it can run none of them. */
export function drawProbe(
  candidates: readonly Candidate[],
  knows: KnownJobs,
  probes: Probes,
  random: Random,
): string | null {
  const known = candidates.filter(({ name, version }) => (knows.get(name) ?? -1) >= (version ?? 0));
  return pickProbe(
    probes,
    known.map(({ id }) => id),
    random,
  );
}
