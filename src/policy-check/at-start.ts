import type { AnyJobDefinition } from '../definition.ts';
import type { Logger } from '../observe/log.ts';
import type { RetryOptions } from '../retry/policy.ts';
import { resolvePolicy } from '../retry/resolve.ts';
import type { WorkPlan } from '../worker/options.ts';
import { checkPolicy } from './check.ts';
import type { WarningName } from './names.ts';

/** What `Mulligan.open` was given, as far as it decides what the jobs of a definition get. */
export interface OpenSettings {
  readonly queueRetry: ReadonlyMap<string, RetryOptions>;
  readonly queueResource: ReadonlyMap<string, string>;
  readonly hardCap: number | undefined;
  readonly silence: readonly WarningName[];
}

/** Logs warnings when workers start: each warning of a job once, however many workers this process starts. */
export class PolicyWarnings {
  readonly #settings: OpenSettings;
  readonly #log: Logger;
  readonly #logged: Set<string> = new Set();

  constructor(settings: OpenSettings, log: Logger) {
    this.#settings = settings;
    this.#log = log;
  }

  log(
    definitions: Iterable<AnyJobDefinition>,
    { leaseMs, concurrency }: Pick<WorkPlan, 'leaseMs' | 'concurrency'>,
  ): void {
    const { queueRetry, queueResource, hardCap, silence } = this.#settings;
    for (const definition of definitions) {
      const { name, queue, retry } = definition;
      const { policy } = resolvePolicy({ definition: retry, queue: queueRetry.get(queue), hardCap });
      const job = { ...definition, resource: definition.resource ?? queueResource.get(queue) ?? null };
      const silenced = [...silence, ...definition.silence];
      for (const warning of checkPolicy({ policy, job, leaseMs, places: concurrency }, silenced)) {
        const known = `${warning.name} ${name}`;
        if (this.#logged.has(known)) continue;
        this.#logged.add(known);
        this.#log.warn(`job ${name}: ${warning.problem} ${warning.advice}`, { job: name, warning: warning.name });
      }
    }
  }
}
