import { ConfigError } from '../errors.ts';
import { DEEPEST_JSON, isTooDeep } from '../json-shape.ts';
import type { NewJob } from './store.ts';

/*
 * JSON as stores keep and send it. `JSON.stringify` writes no line breaks, so many texts travel as one, joined by them:
 * that is quicker than quoting or copying each.
 */
const LINE_BREAK = '\n';

/** Every store begins an enqueue with this: further on, a line break would mix up the payloads of several jobs. */
export function checkPayloads(jobs: readonly Pick<NewJob, 'payload'>[]): void {
  if (!jobs.some(({ payload }) => payload.includes(LINE_BREAK))) return;
  throw new ConfigError('payload: expected JSON as JSON.stringify writes it, got one with line breaks.');
}

export function joinJson(texts: readonly string[]): string {
  return texts.join(LINE_BREAK);
}

export function splitJson(joined: string): string[] {
  return joined.split(LINE_BREAK);
}

/** Shown in place of data that nothing could write again. No enqueue of this version stores such data. */
const TOO_DEEP = `[JSON of more than ${DEEPEST_JSON} levels]`;

/** The payload or progress of a job, for those that look at it. Workers get the text. */
export function parseData(text: string | null): unknown {
  if (text === null) return null;
  return isTooDeep(text) ? TOO_DEEP : JSON.parse(text);
}

/** What is read once and shared by many: nobody may change it. */
export function parseFrozen<Value>(text: string): Value {
  return JSON.parse(text, (_, value: unknown) => Object.freeze(value)) as Value;
}
