/** Checks a value against the schema and explains each finding. */

import type * as z from 'zod';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, setOwn, valueAt } from '../base/json.ts';
import { errorAtKey, errorAtValue, missingMember, type Finding, type ConfigPath } from './finding.ts';
import type { SectionFinding } from './rule.ts';
import { isPath, show } from './schema-fields.ts';
import { didYouMean, nearestWord } from '../base/suggest.ts';

interface Checked<T extends z.ZodType> {
  /** Undefined when anything is wrong. */
  readonly data: z.output<T> | undefined;
  readonly findings: readonly Finding[];
}

/** Checks the sections that the schema describes, and ignores the others. `written` has no empty keys. */
export function checkSections<T extends z.ZodObject>(schema: T, written: JsonObject): Checked<T> {
  const checked: JsonObject = {};
  for (const section of Object.keys(schema.shape)) {
    const value = ownValue(written, section);
    if (value !== undefined) setOwn(checked, section, value);
  }
  return checkAgainst(schema, checked);
}

export function checkAgainst<T extends z.ZodType>(schema: T, value: JsonObject): Checked<T> {
  // Compiling the schema to code pays from the second parse on; this is the only one.
  const result = schema.safeParse(value, { jitless: true });
  if (result.success) return { data: result.data, findings: [] };
  const { issues } = result.error;
  return { data: undefined, findings: issues.flatMap((issue) => findingsOf(issue, value, schema)) };
}

type Issue = z.core.$ZodIssue;

function findingsOf(issue: Issue, root: JsonObject, schema: z.ZodType): Finding[] {
  const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
  const value = valueAt(root, path);
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(path, key, knownKeys(path, schema)));
    case 'invalid_type':
      return [typeFinding(issue, path, { value, known: knownKeys(path, schema) })];
    case 'invalid_value': {
      const words = issue.values.map(String);
      if (value === undefined) return [errorAtKey(path, `is required: one of ${words.join(', ')}`)];
      return [errorAtValue(path, oneOf(words, value))];
    }
    case 'too_small':
    case 'too_big':
      return [errorAtValue(path, rangeMessage(issue, value))];
    case 'invalid_union': {
      // The alternative whose type fits: it has findings inside of the value only.
      const fitting = issue.errors.find((of) =>
        of.every((one) => one.path.length > 0 || one.code === 'unrecognized_keys'),
      );
      if (fitting === undefined) return [errorAtValue(path, issue.message)];
      return fitting.flatMap((one) => findingsOf({ ...one, path: [...path, ...one.path] }, root, schema));
    }
    case 'invalid_key':
      return issue.issues.map(({ message }) => errorAtKey(path, message));
    case 'custom':
      return [ruleFinding(issue, path, root)];
    default:
      return [errorAtValue(path, issue.message)];
  }
}

function ruleFinding(
  { message, params }: z.core.$ZodIssueCustom,
  path: ConfigPath,
  root: JsonObject,
): Finding {
  const finding = params?.['finding'] as SectionFinding | undefined; // as `withRule` writes it
  if (finding === undefined) return errorAtValue(path, message);
  const isOther = finding.other !== undefined && valueAt(root, path) === undefined;
  const place = isOther ? [...path.slice(0, -1), finding.other] : path;
  return { ...finding, path: place, ...(finding.missing && { missing: [place] }) };
}

function unknownKey(parent: ConfigPath, key: string, known: readonly string[]): Finding {
  if (known.length === 0)
    return errorAtKey([...parent, key], `takes no keys: write {} instead of ${show(key)}`);
  const near = nearestWord(key, known);
  const path = [...parent, key];
  const what = `unknown key ${show(key)}`;
  if (near === undefined) return errorAtKey(path, `${what}; known here: ${known.join(', ')}`);
  return { ...errorAtKey(path, `${what}, did you mean "${near}"?`), meant: [...parent, near] };
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function typeFinding(
  issue: z.core.$ZodIssueInvalidType,
  path: ConfigPath,
  { value, known }: { readonly value: JsonValue | undefined; readonly known: readonly string[] },
): Finding {
  const hasOwnMessage = !issue.message.startsWith('Invalid input');
  if (value === undefined) return missingMember(path, hasOwnMessage ? issue.message : 'is required');
  if (hasOwnMessage) return errorAtValue(path, issue.message);
  const isCount = issue.expected === 'number' || issue.expected === 'int';
  const wanted = isCount ? 'a whole number' : (TYPE_WORDS[issue.expected] ?? issue.expected);
  const hint = typeHint(issue.expected, value, known);
  return errorAtValue(path, `must be ${wanted}, found ${show(value)}${hint}`);
}

const LISTED_KEYS_MAX = 6;

/** How to fix common mistakes. */
function typeHint(expected: string, value: JsonValue, known: readonly string[]): string {
  if (expected === 'boolean' && typeof value === 'string') {
    const isTrue = /^(true|yes|on|y|1|enabled)$/iu.test(value);
    const isFalse = /^(false|no|off|n|0|disabled)$/iu.test(value);
    if (isTrue || isFalse) return `: write ${isTrue} without quotes`;
  }
  if ((expected === 'number' || expected === 'int') && typeof value === 'string' && /^\d+$/u.test(value)) {
    return `: write ${Number(value)} without quotes`;
  }
  if (typeof value === 'boolean' && known.includes('enabled')) return `: write {enabled: ${value}}`;
  if (expected === 'object' && known.length > 0 && known.length <= LISTED_KEYS_MAX)
    return `: it has the keys ${known.join(', ')}`;
  if (expected === 'string' && typeof value !== 'object') return `: put it in quotes`;
  if (expected === 'array' && isJsonObject(value)) return ': start each entry with "- "';
  return '';
}

function oneOf(words: readonly string[], value: JsonValue | undefined): string {
  const near = typeof value === 'string' ? didYouMean(value, words) : '';
  return `must be one of ${words.join(', ')}, found ${show(value)}${near}`;
}

function rangeMessage(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  value: JsonValue | undefined,
): string {
  if (issue.origin === 'string') return 'must not be empty';
  const limit = issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  return `must be ${limit}, found ${show(value)}`;
}

/** The keys that the schema defines in the mapping at a path. */
export function knownKeys(path: ConfigPath, root: z.ZodType): string[] {
  const shape = memberOf(unwrapped(schemaAt(path, root)), 'shape');
  return typeof shape === 'object' && shape !== null ? Object.keys(shape) : [];
}

/** The fields that are paths of files or folders, dotted. */
export function pathFields(root: z.ZodType, section: readonly string[] = []): string[] {
  return knownKeys(section, root).flatMap((key) => {
    const path = [...section, key];
    return isPath(schemaAt(path, root)) ? [path.join('.')] : pathFields(root, path);
  });
}

function schemaAt(path: ConfigPath, root: z.ZodType): unknown {
  return path.reduce<unknown>((schema, step) => childOf(unwrapped(schema), step), root);
}

function childOf(schema: unknown, step: string | number): unknown {
  const shape = memberOf(schema, 'shape');
  if (typeof shape === 'object' && shape !== null) return memberOf(shape, String(step));
  return memberOf(schema, typeof step === 'number' ? 'element' : 'valueType');
}

/** The schema inside of `optional`, `default`, `prefault` and `transform`, and the mapping of a union. */
function unwrapped(schema: unknown): unknown {
  let inner = schema;
  for (let next = innerOf(inner); next !== undefined; next = innerOf(inner)) inner = next;
  return inner;
}

function innerOf(schema: unknown): unknown {
  const definition = memberOf(schema, 'def');
  const union = memberOf(definition, 'options');
  const options: readonly unknown[] = Array.isArray(union) ? union : [];
  const mapping = options.find((one) => memberOf(one, 'shape') !== undefined);
  return memberOf(definition, 'innerType') ?? memberOf(definition, 'in') ?? mapping;
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as Record<string, unknown>)[key]; // read only, checked by the caller
}
