/* The frames of a stack that are the user's own, in a form that stays the same when code moves to another line or machine. */

const MOST_FRAMES = 3;
/** So many lines are looked at. */
const MOST_LINES = 60;
/** The worker, which calls handlers: also where this package is linked and not in node_modules. */
const WORKER = workerFolder(import.meta.url);

/** The topmost own frames as `function@file`: without folders, line numbers, dependencies and parts of Node.js. */
export function framesOf(stack: string | null): string[] {
  const frames: string[] = [];
  if (stack === null) return frames;
  for (const line of stack.split('\n', MOST_LINES)) {
    const frame = ownFrame(line.trim());
    // Recursion may be deeper in one run than in the next.
    if (frame !== null && frame !== frames.at(-1)) frames.push(frame);
    if (frames.length === MOST_FRAMES) break;
  }
  return frames;
}

/** `at fn (file:line:column)`, or without a name `at file:line:column`. */
function ownFrame(line: string): string | null {
  if (!line.startsWith('at ') || line.includes('eval at ')) return null;
  const text = line.slice('at '.length);
  const open = text.endsWith(')') ? text.lastIndexOf(' (') : -1;
  const place = open === -1 ? text.replace(/^async /, '') : text.slice(open + 2, -1);
  const file = /^(.+?)(?::\d+){1,2}$/.exec(place)?.[1];
  if (file === undefined || file.startsWith('node:')) return null;
  if (/[\\/]node_modules[\\/]/.test(file) || isWorker(file)) return null;
  return `${open === -1 ? '' : functionName(text.slice(0, open))}@${baseName(file)}`;
}

function isWorker(file: string): boolean {
  return WORKER !== null && file.replace(/^file:\/\//, '').startsWith(WORKER);
}

/** Null in a browser, where all code is one file and has no folders. */
function workerFolder(thisFile: string | undefined): string | null {
  return thisFile?.startsWith('file:') ? new URL('../worker/', thisFile).pathname : null;
}

function functionName(text: string): string {
  return text
    .replace(/^(?:async )?(?:new )?/, '')
    .replace(/ \[as [^\]]*\]$/, '')
    .replace(/^(?:Object|Module|Function)\./, '');
}

/** Without its folder, its ending (the sources end in .ts, what runs in .js), a query, and the digest that a bundler adds. */
function baseName(file: string): string {
  const name = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  const plain = name.replace(/[?#].*$/, '').replace(/\.[cm]?[jt]sx?$/, '');
  return plain.replace(/[-.](?=[\w]*\d)\w{6,}$/, '');
}
