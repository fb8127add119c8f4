/** Runs one test case offline, in the directions for which it has expectations. */

import { objectKey, type KubeObject, asJson, parseKey, qualifiedKeyOf } from '../../kube/object.ts';
import type { Config } from '../../syncer/config/config.ts';
import type { FileSync, RenderedWorld } from '../../syncer/rehearsal/files.ts';
import type { TestCase, Expectation } from './test-file.ts';
import { PatchError, messageOf } from '../../base/errors.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  textAt,
  ownValue,
  jsonEquals,
} from '../../base/json.ts';
import { printPath } from '../../syncer/patch/path-syntax.ts';
import { withoutBookkeeping } from '../../syncer/translate/bookkeeping.ts';

export interface CaseRun {
  readonly forward: Outcome;
  /** Undefined: the case has no expectations for it. */
  readonly reverse: Outcome | undefined;
  readonly mismatches: readonly Mismatch[];
  /** Where the round trip is not the identity: no expectation could be changed so that it holds. */
  readonly brokenRoundTrip: readonly Mismatch[];
  /** See `RenderedWorld`; empty where the case expects Events. */
  readonly missing: readonly string[];
}

export async function runCase(test: TestCase, config: Config, sync: FileSync): Promise<CaseRun> {
  const there = await sync.run(test, config, { direction: 'toHost', checksRoundTrip: test.roundTrip });
  const { rendered, kinds, world } = there;
  const forward = outcomeOf(there, 'host');
  const missing = test.expect.events === undefined ? there.missing : [];
  const copies = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const mismatches = compareOutcome('', test.expect, forward);
  const brokenRoundTrip = there.roundTrips.flatMap(({ resource, key, result }) =>
    brokenRoundTrips(`round trip ${resource.kind} ${key}`, result),
  );
  if (test.reverse === undefined || kinds.length === 0)
    return { forward, reverse: undefined, mismatches, brokenRoundTrip, missing };
  const changed = { virtual: world.virtual, host: hostAfter(world.host, copies) };
  const back = await sync.run(changed, config, { direction: 'toVirtual' });
  const reverse = outcomeOf(back, 'virtual');
  mismatches.push(...compareOutcome('reverse: ', test.reverse, reverse));
  return { forward, reverse, mismatches, brokenRoundTrip, missing };
}

/** The host objects that flow back: those of the case; where it gives none, or only a name, the copy of the forward run. */
function hostAfter(given: readonly KubeObject[], copies: readonly KubeObject[]): KubeObject[] {
  const isWritten = (object: KubeObject): boolean =>
    object.metadata.annotations !== undefined ||
    Object.keys(object).some((key) => !['apiVersion', 'kind', 'metadata'].includes(key));
  const written = new Map(given.filter(isWritten).map((object) => [qualifiedKeyOf(object), object]));
  return [...written.values(), ...copies.filter((copy) => !written.has(qualifiedKeyOf(copy)))];
}

/** `result`: what comes back, or the patch that fails. */
function brokenRoundTrips(
  subject: string,
  result: { readonly before: JsonObject; readonly after: JsonObject } | PatchError,
): Mismatch[] {
  if (result instanceof PatchError)
    return allOf(result).map((each) => ({
      subject,
      path: each.path,
      expected: 'no error',
      actual: errorEntry(each),
    }));
  return differences({ subject, isSubset: false }, result.before, result.after);
}

// The expectations of a case compared with its outcome: which actual entry an expected one is about, and where the two differ.

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

const EVENTS: EntryRules = {
  isSame: (expected, actual) =>
    ['type', 'reason'].every((key) => isAbsentOrEqual(expected, actual, key)) &&
    SKIPPED.isSame(objectOf(expected), objectOf(actual)) &&
    textAt(actual, 'contains').includes(textAt(expected, 'contains')),
  describe: (entry) => textAt(entry, 'reason'),
};

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
  events: EVENTS,
};

/** Where the outcome differs from what is expected. `prefix` begins the subject of each mismatch. */
function compareOutcome(prefix: string, expected: Expectation, actual: Outcome): Mismatch[] {
  // An unexpected error is a failure even where nothing else is compared.
  const errors = expected.errors ?? [];
  return EXPECTED_MEMBERS.flatMap((member) => {
    const entries = member === 'errors' ? errors : expected[member];
    if (entries === undefined) return [];
    const subject = prefix + (SUBJECTS[member] ?? member);
    return [
      ...compareEntries(subject, entries, actual[member], ENTRY_RULES[member]),
      ...(member === 'errors' ? unexpectedErrors(subject, errors, actual.errors) : []),
    ];
  });
}

export const EXPECTED_MEMBERS = ['host', 'virtual', 'skipped', 'errors', 'events'] as const;

/** Of an entry in messages, if it is not the name of the member. */
const SUBJECTS: Partial<Record<keyof Expectation, string>> = { errors: 'error', events: 'event' };

function unexpectedErrors(
  subject: string,
  expected: readonly JsonObject[],
  actual: readonly JsonObject[],
): Mismatch[] {
  if (expected.length === 0) return [];
  const isUnexpected = (error: JsonObject): boolean => !expected.some((entry) => ERRORS.isSame(entry, error));
  return actual.filter(isUnexpected).map((entry) => unexpected(subject, entry, ERRORS));
}

function unexpected(subject: string, entry: JsonObject, { describe }: EntryRules): Mismatch {
  return { subject: `${subject} ${describe(entry)}`, path: '', expected: undefined, actual: entry };
}

/** Texts are expected in part: where the actual text contains the expected one, they count as equal. */
export function withPartialTexts(expected: JsonObject, actual: JsonObject): JsonObject {
  const result = { ...actual };
  for (const key of ['reason', 'contains']) {
    const [part, whole] = [ownValue(expected, key), ownValue(actual, key)];
    if (typeof part === 'string' && typeof whole === 'string' && whole.includes(part)) result[key] = part;
  }
  return result;
}

function identityOf(entry: JsonObject): (readonly [string, string])[] {
  return IDENTITY.flatMap((key) => {
    const value = ownIdentity(entry, key);
    return value === undefined ? [] : [[key, value] as const];
  });
}

function ownIdentity(entry: JsonObject, key: string): string | undefined {
  return (key === 'kind' ? textAt(entry, key) : textAt(entry, 'metadata', key)) || undefined;
}

function isAbsentOrEqual(expected: JsonObject, actual: JsonObject, key: string): boolean {
  const value = ownValue(expected, key);
  return value === undefined || value === ownValue(actual, key);
}

// Compares expectations with actual results. An expectation is a subset: members that it does not contain are not compared.

export interface Mismatch {
  /** What was compared: `host Endpoints web-x-shop-x-vc`, `skipped`, `round trip shop/web`. */
  readonly subject: string;
  /** Concrete path below the subject; '' is the subject itself. */
  readonly path: string;
  /** Undefined: expected not to be there. */
  readonly expected: JsonValue | undefined;
  readonly actual: JsonValue | undefined;
}

/**
 * Where `actual` differs from `expected`: every difference in both directions, or with `isSubset` in the members of `expected` only. Lists must have
 * the same length; null in a subset expects that there is no value.
 */
function differences(
  rule: { readonly subject: string; readonly isSubset: boolean },
  expected: JsonValue | undefined,
  actual: JsonValue | undefined,
  at: readonly (string | number)[] = [],
): Mismatch[] {
  const { subject, isSubset } = rule;
  if (isJsonObject(expected) && isJsonObject(actual)) {
    const keys = new Set([...Object.keys(expected), ...(isSubset ? [] : Object.keys(actual))]);
    return [...keys].flatMap((key) =>
      differences(rule, ownValue(expected, key), ownValue(actual, key), [...at, key]),
    );
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length)
    return expected.flatMap((element, index) => differences(rule, element, actual[index], [...at, index]));
  if (isSubset && (actual ?? null) === null && expected !== undefined && expectsNothing(expected)) return [];
  const isMissing = isSubset && (isJsonObject(expected) || Array.isArray(expected));
  if (!isMissing && jsonEquals(expected, actual)) return [];
  return [{ subject, path: printPath(at), expected: isSubset ? (expected ?? undefined) : expected, actual }];
}

/** Null, or a map of nothing else: `{annotations: {key: null}}` also holds where there are no annotations. */
function expectsNothing(expected: JsonValue): boolean {
  if (!isJsonObject(expected)) return expected === null;
  const members = Object.values(expected);
  return members.length > 0 && members.every((member) => member !== undefined && expectsNothing(member));
}

/**
 * Each expected entry with the actual one that it is about (`isSame`), so that a mismatch names a field and not a whole list. An empty
 * expectation means that there is nothing at all.
 */
function compareEntries(
  subject: string,
  expected: readonly JsonObject[],
  actual: readonly JsonObject[],
  rules: EntryRules,
): Mismatch[] {
  const { isSame, describe } = rules;
  if (expected.length === 0) return actual.map((entry) => unexpected(subject, entry, rules));
  return expected.flatMap((entry) => {
    const one = `${subject} ${describe(entry)}`;
    const found = actual.find((candidate) => isSame(entry, candidate));
    if (found !== undefined)
      return differences({ subject: one, isSubset: true }, entry, withPartialTexts(entry, found));
    const others = actual.length === 0 ? undefined : actual.map(describe);
    return [{ subject: one, path: '', expected: entry, actual: others }];
  });
}

interface EntryRules {
  readonly isSame: (expected: JsonObject, actual: JsonObject) => boolean;
  readonly describe: (entry: JsonObject) => string;
}

// The outcome of a case in one direction, in the format of the expectations in test files.

export type Outcome = Readonly<Record<keyof Expectation, readonly JsonObject[]>>;

/** `side`: the cluster to which the objects were rendered. */
function outcomeOf(
  { rendered, events }: Pick<RenderedWorld, 'rendered' | 'events'>,
  side: 'host' | 'virtual',
): Outcome {
  const outcome: Record<Exclude<keyof Expectation, 'events'>, JsonObject[]> = {
    host: [],
    virtual: [],
    skipped: [],
    errors: [],
  };
  const other = side === 'host' ? 'virtual' : 'host';
  for (const one of rendered) {
    if ('object' in one)
      outcome[one.kind === 'object' ? side : other].push(asJson(withoutBookkeeping(one.object)));
    else {
      const object = { kind: one.of, ...parseKey(one.key) };
      if (one.kind === 'failed')
        outcome.errors.push(...allOf(one.error).map((error) => ({ object, ...errorEntry(error) })));
      else outcome.skipped.push({ ...object, reason: one.reason });
    }
  }
  return { ...outcome, events: events.map(eventEntry) };
}

function eventEntry({ resource, regarding, ...event }: RenderedWorld['events'][number]): JsonObject {
  const object = { kind: resource.kind, ...parseKey(objectKey(regarding)) };
  return { object, type: event.type, reason: event.reason, contains: event.note };
}

function allOf<T>(error: T): readonly (T | PatchError)[] {
  return error instanceof PatchError ? [error, ...error.others] : [error];
}

/** A failure as an entry of `errors`, without its object. */
function errorEntry(error: unknown): JsonObject {
  const contains = messageOf(error);
  if (!(error instanceof PatchError)) return { contains };
  return { patch: error.index, path: error.path, kind: error.kind, contains };
}
