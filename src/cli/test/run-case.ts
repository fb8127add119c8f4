/** One test case: the objects of the case synced offline, in the directions that it asks about, and what differs from its expectations. */

import { PatchError } from '../../base/errors.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { asJson, keyOf, objectKey, parseKey, type KubeObject } from '../../kube/object.ts';
import { reverseObject } from '../../syncer/reconcile/copy-forge.ts';
import {
  renderToHost,
  renderToVirtual,
  type Rendered,
  type RenderOptions,
  type RenderWorld,
} from '../../syncer/render.ts';
import { EXCLUDED_ANNOTATIONS } from '../../syncer/translate/metadata/bookkeeping.ts';
import { backTranslate } from '../../syncer/translate/forge.ts';
import { withValueAt } from '../../syncer/translate/json-path.ts';
import { stringMapOf } from '../../syncer/translate/metadata/labels.ts';
import { virtualOf } from '../../syncer/translate/metadata/ownership.ts';
import { inNamespace, type OfflineSync } from '../offline/offline-sync.ts';
import { withoutBookkeeping } from '../objects/without-bookkeeping.ts';
import { compareEntries, compareWhole, type EntryRules, type Mismatch } from './compare.ts';
import type { Expectation, TestCase } from './test-file.ts';

/** What came out in one direction, in the form in which expectations are written. */
export type Outcome = Readonly<Record<keyof Expectation, readonly JsonObject[]>>;

export interface CaseRun {
  readonly forward: Outcome;
  /** Undefined: the case does not ask for it. */
  readonly reverse: Outcome | undefined;
  /** Where an expectation does not hold. */
  readonly mismatches: readonly Mismatch[];
  /** Where the round trip is not the identity: no expectation could be changed so that it holds. */
  readonly brokenRoundTrip: readonly Mismatch[];
}

/** `optionsForKinds` as in {@link OfflineSync}: a coverage run observes the pipelines there. */
export async function runCase(
  test: TestCase,
  sync: Pick<OfflineSync, 'config' | 'optionsForKinds'>,
): Promise<CaseRun> {
  const world = {
    virtual: inNamespace(test.virtual, 'default'),
    host: inNamespace(test.host, sync.config.host.namespace),
  };
  const kinds = sync.optionsForKinds(world);
  const rendered = await renderKinds(kinds, (options) => renderToHost(world, options));
  const forward = outcomeOf(rendered, 'host');
  const copies = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const mismatches = compareOutcome('', test.expect, forward);
  const brokenRoundTrip = test.roundTrip ? await roundTrips(world, copies, kinds) : [];
  if (test.reverse === undefined || kinds.length === 0)
    return { forward, reverse: undefined, mismatches, brokenRoundTrip };
  const changed = { virtual: world.virtual, host: hostAfter(world.host, copies) };
  const back = await renderKinds(sync.optionsForKinds(changed), (options) =>
    renderToVirtual(changed, options),
  );
  const reverse = outcomeOf(back, 'virtual');
  mismatches.push(...compareOutcome('reverse: ', test.reverse, reverse));
  return { forward, reverse, mismatches, brokenRoundTrip };
}

async function renderKinds(
  kinds: readonly RenderOptions[],
  render: (options: RenderOptions) => Promise<Rendered[]>,
): Promise<Rendered[]> {
  return (await Promise.all(kinds.map(render))).flat();
}

/** What flows back: host objects as the case gives them; where it gives none, or only a name, the copy that was just made. */
function hostAfter(given: readonly KubeObject[], copies: readonly KubeObject[]): KubeObject[] {
  const isWritten = (object: KubeObject): boolean =>
    object.metadata.annotations !== undefined ||
    Object.keys(object).some((key) => !['apiVersion', 'kind', 'metadata'].includes(key));
  const idOf = (object: KubeObject): string => `${object.kind ?? ''} ${objectKey(object)}`;
  const written = new Map(given.filter(isWritten).map((object) => [idOf(object), object]));
  return [...written.values(), ...copies.filter((copy) => !written.has(idOf(copy)))];
}

function outcomeOf(rendered: readonly Rendered[], side: 'host' | 'virtual'): Outcome {
  const outcome = { host: [], virtual: [], skipped: [], errors: [] } as Record<
    keyof Expectation,
    JsonObject[]
  >;
  const other = side === 'host' ? 'virtual' : 'host';
  for (const one of rendered) {
    switch (one.kind) {
      case 'object':
        outcome[side].push(asJson(withoutBookkeeping(one.object)));
        break;
      case 'elsewhere':
        outcome[other].push(asJson(withoutBookkeeping(one.object)));
        break;
      case 'skipped':
        outcome.skipped.push({ kind: one.of, ...parseKey(one.key), reason: one.reason });
        break;
      case 'refused': {
        const [kind = '', key = ''] = one.what.split(' ');
        outcome.skipped.push({ kind, ...parseKey(key), reason: one.reason });
        break;
      }
      case 'failed':
        outcome.errors.push(errorEntry(one.error));
        break;
      default:
        one satisfies never;
    }
  }
  return outcome;
}

function errorEntry(error: unknown): JsonObject {
  const contains = error instanceof Error ? error.message : String(error);
  if (!(error instanceof PatchError)) return { contains };
  return { patch: error.index, path: error.path, kind: error.kind, contains };
}

const OBJECTS: EntryRules = {
  isSame: (expected, actual) =>
    identityOf(expected).every(([key, value]) => ownIdentity(actual, key) === value),
  describe: (entry) => {
    const { kind = 'object', namespace, name = '' } = Object.fromEntries(identityOf(entry));
    return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
  },
};

const SKIPPED: EntryRules = {
  isSame: (expected, actual) =>
    ['kind', 'namespace', 'name'].every((key) => isUnsaidOrEqual(expected, actual, key)),
  describe: (entry) =>
    ['kind', 'namespace', 'name']
      .map((key) => textAt(entry, key))
      .filter(Boolean)
      .join(' '),
};

const ERRORS: EntryRules = {
  isSame: (expected, actual) => isUnsaidOrEqual(expected, actual, 'patch'),
  describe: (entry) =>
    entry['patch'] === undefined ? 'of the sync' : `of patches[${JSON.stringify(entry['patch'])}]`,
};

/** Which actual entry an expected one is about. */
export const ENTRY_RULES: Readonly<Record<keyof Expectation, EntryRules>> = {
  host: OBJECTS,
  virtual: OBJECTS,
  skipped: SKIPPED,
  errors: ERRORS,
};

function compareOutcome(prefix: string, expected: Expectation, actual: Outcome): Mismatch[] {
  const { host, virtual, skipped } = expected;
  // An error that no case asks for is a failure even where nothing else is compared.
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

async function roundTrips(
  world: RenderWorld,
  copies: readonly KubeObject[],
  kinds: readonly RenderOptions[],
): Promise<Mismatch[]> {
  return (await Promise.all(kinds.map((options) => roundTrip(world, copies, options)))).flat();
}

/** Every copy translated back, with nothing changed on the host, has to give the virtual object again. */
async function roundTrip(
  world: RenderWorld,
  copies: readonly KubeObject[],
  options: RenderOptions,
): Promise<Mismatch[]> {
  const { resource } = options.kind;
  const virtual = new Map(
    world.virtual.filter(({ kind }) => kind === resource.kind).map((object) => [objectKey(object), object]),
  );
  const mismatches: Mismatch[] = [];
  for (const copy of copies.filter(({ kind }) => kind === resource.kind)) {
    const name = virtualOf(copy, resource, options.names);
    const original = name && virtual.get(keyOf(name));
    if (name === undefined || original === undefined) continue;
    const subject = `round trip ${resource.kind} ${keyOf(name)}`;
    try {
      const reversed = await reverseObject(copy, original, name.namespace, options.pipeline);
      const back = backTranslate(reversed, name, { ...options, content: options.kind.content }, original);
      mismatches.push(...compareWhole(subject, crossing(original, options), crossing(back, options)));
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      mismatches.push({ subject, path: error.path, expected: 'no error', actual: errorEntry(error) });
    }
  }
  return mismatches;
}

/** What goes to the host and comes back, as an API server stores it. What only the host may set does not count. */
function crossing(object: KubeObject, { pipeline, kind }: RenderOptions): JsonObject {
  const metadata = { ...object.metadata };
  for (const member of ['annotations', 'labels'] as const) {
    const all = Object.entries(stringMapOf(metadata[member]));
    const isExcluded = (key: string): boolean =>
      member === 'labels' ? kind.content.isOwnLabel(key) : EXCLUDED_ANNOTATIONS.has(key);
    const entries = all.filter(([key]) => !isExcluded(key));
    delete metadata[member];
    if (entries.length > 0) metadata[member] = Object.fromEntries(entries);
  }
  const { apiVersion: _apiVersion, kind: _kind, ...content } = object;
  for (const member of kind.content.members) delete content[member];
  let crossed: JsonValue = asJson({ ...content, ...kind.content.stored(asJson(object)), metadata });
  for (const path of pipeline.hostOwnedPaths(crossed).toReversed())
    crossed = withValueAt(crossed, path, undefined);
  return isJsonObject(crossed) ? crossed : {};
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

function isUnsaidOrEqual(expected: JsonObject, actual: JsonObject, key: string): boolean {
  const value = ownValue(expected, key);
  return value === undefined || value === ownValue(actual, key);
}

function textAt(entry: JsonObject, key: string): string {
  const value = ownValue(entry, key);
  return typeof value === 'string' ? value : '';
}
