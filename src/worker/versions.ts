import { shorten } from '../config.ts';
import type { AnyJobDefinition } from '../definition.ts';
import { InputError } from '../errors.ts';
import { DEEPEST_JSON, isTooDeep } from '../json-shape.ts';
import { controlErrorOf, Unrecoverable } from '../retry/control-errors.ts';
import { asideAfter, FIRST_VERSION, REJECTED_RULE } from '../retry/decision.ts';
import type { RejectedBefore } from '../retry/outcome.ts';
import type { ClaimedJob, Store } from '../store/store.ts';
import { toStoredError } from '../untrusted/stored-error.ts';

/* What a worker makes of a job that was enqueued with another version of its definition. */

export function versionOf({ version }: Pick<AnyJobDefinition, 'version'>): number {
  return version ?? FIRST_VERSION;
}

/** The worker has only an older version of the definition, so it cannot know what the payload means. */
export function isNewer(job: Pick<ClaimedJob, 'version'>, definition: AnyJobDefinition): boolean {
  return job.version !== null && job.version > versionOf(definition);
}

/** A text that is not JSON, or deeper than an enqueue takes, stays so in every worker. */
export function decode(payload: string): unknown {
  if (isTooDeep(payload)) {
    const found = `expected a payload of at most ${DEEPEST_JSON} levels, got more. An enqueue of this version would refuse it.`;
    throw new Unrecoverable(found);
  }
  try {
    return JSON.parse(payload);
  } catch (error) {
    const found = 'expected a payload in JSON, got another text. Something has changed it in the store.';
    throw new Unrecoverable(found, { cause: error });
  }
}

/** Whether the payload is of an earlier version than the definition, which can migrate it. */
export function needsMigration(job: Pick<ClaimedJob, 'version'>, definition: AnyJobDefinition): boolean {
  return definition.migrate !== undefined && (job.version ?? FIRST_VERSION) < versionOf(definition);
}

/** An input of the definition's version. Throws InputError when `migrate` fails: another version may read the payload. */
export async function migrateInput(input: unknown, job: ClaimedJob, definition: AnyJobDefinition): Promise<unknown> {
  const from = job.version ?? FIRST_VERSION;
  const failed = (problem: string): InputError => {
    const versions = `version ${from} to ${versionOf(definition)}`;
    const issue = { message: `migrate ${problem}`, path: '' };
    return new InputError(
      `${job.name}: expected migrate to bring a payload from ${versions}, but it ${shorten(problem)}`,
      [issue],
    );
  };
  let migrated: unknown;
  try {
    migrated = await definition.migrate?.(input, from);
  } catch (error) {
    if (controlErrorOf(error) !== null) throw error;
    const { name, message } = toStoredError(error);
    throw failed(`threw ${name}: ${message}`);
  }
  // No payload is undefined, so this is a forgotten `return`.
  if (migrated === undefined) throw failed('returned undefined');
  return migrated;
}

/** How often and since when workers have rejected the payload, by the ledger; null when none has since the job last ran or ended. */
export async function rejectedBefore(store: Pick<Store, 'runs'>, jobId: string): Promise<RejectedBefore | null> {
  const runs = await store.runs(jobId);
  const lastRan = runs.findLastIndex(({ outcome, decision }) => outcome !== 'released' || decision.kind !== 'release');
  const rejected = runs.slice(lastRan + 1).filter(({ decision }) => decision.rule === REJECTED_RULE);
  const [first, last] = [rejected[0], rejected.at(-1)];
  if (first === undefined || last === undefined) return null;
  return { times: rejected.length, since: first.endedAt, kind: asideAfter(last.decision)?.kind };
}
