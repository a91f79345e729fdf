import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type AnyJobDefinition, definitionsByName, isDefinition } from '../definition.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { read, readList } from '../untrusted/thrown.ts';
import { Failure } from './failure.ts';

const MOST_LISTED = 10_000;

/** The definitions that a module exports, by whatever name, alone or in lists. */
export async function loadDefinitions(file: string): Promise<AnyJobDefinition[]> {
  const exported = await load(file);
  const found = new Set(
    Object.values(exported)
      .flatMap((one) => [one, ...readList(one, MOST_LISTED)])
      .filter(isDefinition),
  );
  if (found.size === 0) {
    const names = Object.keys(exported);
    throw new Failure(
      'JOBS_FILE',
      `${file}: expected exports made by defineJob, alone or in a list, got ${names.length === 0 ? 'no export' : names.join(', ')}.`,
    );
  }
  try {
    return [...definitionsByName([...found], file).values()];
  } catch (error) {
    throw new Failure('JOBS_FILE', (error as Error).message, { cause: error });
  }
}

async function load(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  if (!existsSync(path)) {
    throw new Failure('JOBS_FILE', `expected a module with definitions, but there is no file ${file}.`);
  }
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    // A module may throw anything.
    const { name, message } = toStoredError(error);
    const text = `${name}: ${message}`;
    const sentence = /[.!?]$/.test(text) ? text : `${text}.`;
    throw new Failure('JOBS_FILE', `${file} could not be loaded: ${sentence}${advice(error)}`, { cause: error });
  }
}

function advice(error: unknown): string {
  switch (read(error, 'code')) {
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return ' Node.js only strips types: compile the file, or do without enums, namespaces and parameter properties.';
    case 'ERR_UNKNOWN_FILE_EXTENSION':
      return ' Give a .ts, .js, .mts, .mjs or .cjs file.';
    default:
      return '';
  }
}
