import { checkInteger, checkKeys, checkOneOf, unexpected } from '../config.ts';
import { codeOf, namesOf, read, readList, statusOf } from '../untrusted/thrown.ts';
import { type FailureClass, failureClasses } from './outcome.ts';

/** Classifies an error by what it carries, never by its message. A rule holds when all that it names does. */
export interface ClassifyRule {
  /** The error's `name`, or the name of one of its classes. */
  readonly name?: string;
  readonly code?: string;
  /** The HTTP status, or the first and the last of a range. */
  readonly status?: number | readonly [from: number, to: number];
  readonly class: FailureClass;
}

const permanentNames = [
  'ValidationError',
  'NotFoundError',
  'UnauthorizedError',
  'ForbiddenError',
  // What schema libraries throw: zod (both its cores), valibot, superstruct, Standard Schema's own, ArkType.
  'ZodError',
  '$ZodError',
  'ValiError',
  'StructError',
  'SchemaError',
  'TraversalError',
];

const environmentCodes = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED', // what axios calls its timeout
  'EPIPE',
  'ETIMEDOUT',
  'ETIMEOUT', // DNS, from c-ares
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_SOCKET',
];

/** The first rule that holds wins: the exceptions among the 4xx stand before their range. */
export const defaultRules: readonly ClassifyRule[] = [
  ...permanentNames.map((name): ClassifyRule => ({ name, class: 'permanent' })),
  { name: 'InputError', code: 'INPUT', class: 'permanent' },
  { name: 'TimeoutError', class: 'environment' },
  ...environmentCodes.map((code): ClassifyRule => ({ code, class: 'environment' })),
  ...[408, 425, 429].map((status): ClassifyRule => ({ status, class: 'environment' })),
  { status: [400, 499], class: 'permanent' },
  { status: [500, 599], class: 'environment' },
];

export interface Match {
  readonly class: FailureClass;
  /** What matched, for the ledger: `name:ZodError`, `code:EPIPE`, `http:503`. */
  readonly rule: string;
}

/** Enough for any real tree of errors; a hostile one may grow as it is read. */
const MOST_ERRORS = 200;
const MOST_AGGREGATED = 20;

/** The first match along the chain of causes, the thrown error itself first. */
export function matchRules(thrown: unknown, rules: readonly ClassifyRule[]): Match | null {
  return rules.length === 0 ? null : matchChain(thrown, rules, new Set());
}

function matchChain(error: unknown, rules: readonly ClassifyRule[], seen: Set<unknown>): Match | null {
  if (error === undefined || error === null || seen.has(error) || seen.size >= MOST_ERRORS) return null;
  seen.add(error);
  return matchOne(error, rules) ?? matchChain(read(error, 'cause'), rules, seen) ?? matchAggregate(error, rules, seen);
}

/**
 * Of several errors in one, the least permanent decides: one 404 among them does not make the failure permanent when
 * another attempt against the others could succeed.
 */
function matchAggregate(error: unknown, rules: readonly ClassifyRule[], seen: Set<unknown>): Match | null {
  const errors = read(error, 'errors');
  if (errors === undefined) return null;
  const members = new Set(readList(errors, MOST_AGGREGATED));
  const matches = [...members].map((member) => matchChain(member, rules, seen));
  const leastPermanent =
    matches.find((match) => match?.class === 'environment') ?? matches.find((match) => match?.class !== 'permanent');
  return leastPermanent === undefined ? (matches[0] ?? null) : leastPermanent;
}

function matchOne(error: unknown, rules: readonly ClassifyRule[]): Match | null {
  const names = namesOf(error);
  const code = codeOf(error);
  const status = statusOf(error);
  for (const rule of rules) {
    if (rule.name !== undefined && !names.includes(rule.name)) continue;
    if (rule.code !== undefined && rule.code !== code) continue;
    if (rule.status !== undefined && !isStatusWithin(status, rule.status)) continue;
    return { class: rule.class, rule: ruleText(rule, status) };
  }
  return null;
}

function isStatusWithin(status: number | null, wanted: number | readonly [number, number]): boolean {
  if (status === null) return false;
  return typeof wanted === 'number' ? status === wanted : status >= wanted[0] && status <= wanted[1];
}

function ruleText({ name, code, status: wanted }: ClassifyRule, status: number | null): string {
  const parts = [name && `name:${name}`, code && `code:${code}`, wanted && `http:${status}`];
  return parts.filter((part) => part !== undefined).join(' ');
}

export function validateClassifyRules(rules: unknown, what: string): readonly ClassifyRule[] {
  if (!Array.isArray(rules)) throw unexpected(what, 'a list of rules', rules);
  return Array.from(rules, (rule: unknown, index) => validateRule(rule, `${what}[${index}]`));
}

function validateRule(rule: unknown, what: string): ClassifyRule {
  checkKeys(rule, ['name', 'code', 'status', 'class'], what);
  const { name, code, status } = rule;
  if (name === undefined && code === undefined && status === undefined) {
    throw unexpected(what, 'a name, a code or a status to match', rule, 'A rule must not match every error.');
  }
  return {
    ...(name === undefined ? {} : { name: checkText(name, `${what}.name`) }),
    ...(code === undefined ? {} : { code: checkText(code, `${what}.code`) }),
    ...(status === undefined ? {} : { status: checkStatus(status, `${what}.status`) }),
    class: checkOneOf(rule.class, failureClasses, `${what}.class`),
  };
}

function checkText(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw unexpected(what, 'a text that is not empty', value);
}

function checkStatus(status: unknown, what: string): number | readonly [number, number] {
  if (!Array.isArray(status)) return checkInteger(status, what, { min: 100, max: 599 });
  if (status.length !== 2) throw unexpected(what, 'a status or [from, to]', status);
  const from = checkInteger(status[0], `${what}[0]`, { min: 100, max: 599 });
  return [from, checkInteger(status[1], `${what}[1]`, { min: from, max: 599 })];
}
