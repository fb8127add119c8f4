/** The expectations of a case compared with its outcome: which actual entry an expected one is about, and where the two differ. */

import { isJsonObject, ownValue, type JsonObject } from '../../base/json.ts';
import { compareEntries, type EntryRules, type Mismatch } from './compare.ts';
import type { Outcome } from './outcome.ts';
import type { Expectation } from './test-file.ts';

const OBJECTS: EntryRules = {
  isSame: (expected, actual) =>
    identityOf(expected).every(([key, value]) => ownIdentity(actual, key) === value),
  describe: (entry) => {
    const { kind = 'object', namespace, name = '' } = Object.fromEntries(identityOf(entry));
    return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  },
};

const IDENTITY = ['kind', 'namespace', 'name'];

const SKIPPED: EntryRules = {
  isSame: (expected, actual) => IDENTITY.every((key) => isAbsentOrEqual(expected, actual, key)),
  describe: (entry) =>
    IDENTITY.map((key) => textAt(entry, key))
      .filter(Boolean)
      .join(' '),
};

const ERRORS: EntryRules = {
  isSame: (expected, actual) =>
    isAbsentOrEqual(expected, actual, 'patch') && SKIPPED.isSame(objectOf(expected), objectOf(actual)),
  describe: (entry) =>
    entry['patch'] === undefined ? 'of the sync' : `of patches[${JSON.stringify(entry['patch'])}]`,
};

/** The object of an error. */
function objectOf(entry: JsonObject): JsonObject {
  const object = ownValue(entry, 'object');
  return isJsonObject(object) ? object : {};
}

/** Which actual entry an expected one is about. */
export const ENTRY_RULES: Readonly<Record<keyof Expectation, EntryRules>> = {
  host: OBJECTS,
  virtual: OBJECTS,
  skipped: SKIPPED,
  errors: ERRORS,
};

/** Where the outcome differs from what is expected. `prefix` begins the subject of each mismatch. */
export function compareOutcome(prefix: string, expected: Expectation, actual: Outcome): Mismatch[] {
  const { host, virtual, skipped } = expected;
  // An unexpected error is a failure even where nothing else is compared.
  const errors = expected.errors ?? [];
  return [
    ...(host === undefined ? [] : compareEntries(`${prefix}host`, host, actual.host, OBJECTS)),
    ...(virtual === undefined ? [] : compareEntries(`${prefix}virtual`, virtual, actual.virtual, OBJECTS)),
    ...(skipped === undefined
      ? []
      : compareEntries(
          `${prefix}skipped`,
          skipped,
          containing(actual.skipped, skipped, SKIPPED, 'reason'),
          SKIPPED,
        )),
    ...compareEntries(
      `${prefix}error`,
      errors,
      containing(actual.errors, errors, ERRORS, 'contains'),
      ERRORS,
    ),
    ...unexpectedErrors(`${prefix}error`, errors, actual.errors),
  ];
}

function unexpectedErrors(
  subject: string,
  expected: readonly JsonObject[],
  actual: readonly JsonObject[],
): Mismatch[] {
  if (expected.length === 0) return [];
  return actual
    .filter((error) => !expected.some((entry) => ERRORS.isSame(entry, error)))
    .map((error) => ({
      subject: `${subject} ${ERRORS.describe(error)}`,
      path: '',
      expected: undefined,
      actual: error,
    }));
}

/** Texts are expected in part: where the actual text contains the expected one, they count as equal. */
function containing(
  actual: readonly JsonObject[],
  expected: readonly JsonObject[],
  { isSame }: EntryRules,
  key: string,
): JsonObject[] {
  return actual.map((entry) => {
    const wanted = expected.find((one) => isSame(one, entry));
    const part = wanted && textAt(wanted, key);
    return part !== undefined && textAt(entry, key).includes(part) ? { ...entry, [key]: part } : entry;
  });
}

function identityOf(entry: JsonObject): (readonly [string, string])[] {
  return ['kind', 'namespace', 'name'].flatMap((key) => {
    const value = ownIdentity(entry, key);
    return value === undefined ? [] : [[key, value] as const];
  });
}

function ownIdentity(entry: JsonObject, key: string): string | undefined {
  const holder = key === 'kind' ? entry : ownValue(entry, 'metadata');
  const value =
    typeof holder === 'object' && holder !== null && !Array.isArray(holder)
      ? ownValue(holder, key)
      : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isAbsentOrEqual(expected: JsonObject, actual: JsonObject, key: string): boolean {
  const value = ownValue(expected, key);
  return value === undefined || value === ownValue(actual, key);
}

function textAt(entry: JsonObject, key: string): string {
  const value = ownValue(entry, key);
  return typeof value === 'string' ? value : '';
}
