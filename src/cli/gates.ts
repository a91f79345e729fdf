import { checkOneOf, closest } from '../config.ts';
import type { GateDetails, GateOrderOptions } from '../gates.ts';
import type { Mulligan } from '../mulligan.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import { printable } from '../printable.ts';
import { parentOf } from '../store/gates.ts';
import { type GateKind, type GateOrder, gateKinds } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { Failure } from './failure.ts';
import { given, read, readInteger } from './flags.ts';
import { adviceLines, gateFacts, gateListLines, historyLines, orderedText } from './gate-facts.ts';
import { isResource, knownJobNames, knownResources, refuseUnknownResource } from './known-resources.ts';

const PAGE = 50;
const LARGEST_PAGE = 1_000;

interface ListFlags {
  readonly kind?: string;
  readonly limit?: string;
}

interface OrderFlags {
  readonly by?: string;
  readonly force?: true;
  readonly kind?: string;
}

const orders: Readonly<Record<GateOrder, string>> = {
  open: 'Pin a gate open: nothing of its resource starts, not even probes.',
  close: 'Pin a gate closed: everything of its resource starts, failures count, and jobs may die.',
  unpin:
    'Give a pinned gate back to its rules. One that was pinned open sends probes and ramps up; reset closes it at once.',
  reset: 'Close a gate at once. What it saw and its pin are forgotten.',
};

export function addGates(program: CliCommand, shell: Shell): void {
  const gates = program.command('gates').description('See why jobs of a resource wait, and open or close gates.');
  gates
    .command('list')
    .description('Gates that were heard of lately: those that are not closed first.')
    .option('--kind <kind>', `one of ${gateKinds.join(', ')}`)
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .addHelpText(
      'after',
      '\nNames are shown whole: in a narrow terminal other columns are left out.\nWith --json: { gates: [...] }, times in ms since the epoch.',
    )
    .action((flags: ListFlags) => list(shell, flags));
  gates
    .command('show')
    .description('One gate: what it does and why, what happens next, and its history.')
    .argument('<name>', 'its resource, such as smtp or webhook/example.com, or a job name')
    .option('--kind <kind>', `one of ${gateKinds.join(', ')} (default: the first of these that is known)`)
    .addHelpText('after', '\nWith --json: { gate, isKnown, explanation, history }, times in ms since the epoch.')
    .action((name: string, flags: OrderFlags) => show(shell, name, flags));
  for (const order of Object.keys(orders) as GateOrder[]) {
    const command = gates
      .command(order)
      .description(orders[order])
      .argument('<name>', order === 'reset' ? 'a resource, or a job name' : 'a resource')
      .option('--by <who>', 'who orders it, for its history and the audit (default: user@host)');
    if (isPin(order)) command.option('--force', 'also when no gate and no job has a resource of that name yet');
    if (order === 'reset') command.option('--kind <kind>', `one of ${gateKinds.join(', ')}`);
    command
      .addHelpText('after', '\nWith --json: { gate }, times in ms since the epoch.')
      .action((name: string, flags: OrderFlags) => change(shell, order, name, flags));
  }
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const limit = flags.limit === undefined ? PAGE : readInteger(flags.limit, '--limit', { min: 1, max: LARGEST_PAGE });
  const options = { ...kindOf(flags), limit };
  const gates = await withExisting(shell.database(), (mulligan) => mulligan.gates.list(options));
  output.answer({ gates }, () =>
    gates.length === 0 ? ['No gate was heard of lately: all are closed.'] : gateListLines(gates, output),
  );
  if (gates.length === limit) output.note(`There may be more: --limit shows up to ${LARGEST_PAGE}.`);
}

async function show({ output, ...shell }: Shell, name: string, flags: OrderFlags): Promise<void> {
  const kind = kindOf(flags);
  const details = await withExisting(shell.database(), (mulligan) => detailsOf(mulligan, name, kind));
  const { gate, explanation, history } = details;
  output.answer(details, () => [
    ...gateFacts(details, output),
    '',
    ...explanation.map(printable),
    ...historyLines(history, gate.at, output),
    ...adviceLines(gate, output),
  ]);
}

/** Without a row, a job name that is no resource means the soft gate of that job. */
async function detailsOf(mulligan: Mulligan, name: string, flags: { readonly kind?: GateKind }): Promise<GateDetails> {
  const details = await mulligan.gates.show(name, flags);
  if (details.isKnown || details.history.length > 0) return details;
  const known = await knownResources(mulligan);
  if (await isResource(mulligan, name, known)) return details;
  const jobNames = await knownJobNames(mulligan);
  if (jobNames.includes(name)) return flags.kind === undefined ? mulligan.gates.show(name, { kind: 'job' }) : details;
  const meant = closest(name, [...known, ...jobNames]);
  const hint = meant === null ? 'mulligan gates list names those with a gate.' : `Did you mean ${meant}?`;
  throw new Failure('NOT_FOUND', `there is no gate, resource or job ${name}. ${hint}`);
}

async function change({ output, ...shell }: Shell, order: GateOrder, name: string, flags: OrderFlags): Promise<void> {
  const options = { ...given('by', flags.by), ...kindOf(flags) };
  // The answer says what happened; a log line would only repeat it.
  const { gate, note } = await withExisting(
    shell.database(),
    async (mulligan) => {
      if (isPin(order) && !flags.force) await refuseUnknownResource(mulligan, name);
      return ordered(mulligan, order, name, options);
    },
    { log: () => {} },
  );
  output.answer({ gate }, () => [orderedText(order, gate)]);
  if (note !== null) output.note(printable(note));
}

async function ordered(
  { gates }: Mulligan,
  order: GateOrder,
  name: string,
  options: GateOrderOptions,
): Promise<{ gate: GateInfo; note: string | null }> {
  const { isKnown } = await gates.show(name, order === 'reset' ? {} : { kind: 'resource' });
  const gate = await gates[order](name, options);
  return { gate, note: isKnown ? null : await newGateNote(gates, order, name) };
}

function isPin(order: GateOrder): boolean {
  return order === 'open' || order === 'close';
}

/** For a gate that had no row: the name may be misspelt. Of a pin the resource was checked, or forced, but not the key. */
async function newGateNote(gates: Mulligan['gates'], order: GateOrder, name: string): Promise<string | null> {
  const parent = parentOf(name);
  if (parent !== null && (isPin(order) || (await gates.show(parent, { kind: 'parent' })).isKnown)) {
    return `Gate ${name} had no row, as keys of ${parent} that are well are not stored: check the spelling.`;
  }
  return isPin(order) ? null : `Gate ${name} was not heard of before: check the spelling.`;
}

function kindOf({ kind }: { readonly kind?: string }): { readonly kind?: GateKind } {
  return read('kind', kind, (text): GateKind => checkOneOf(text, gateKinds, '--kind'));
}
