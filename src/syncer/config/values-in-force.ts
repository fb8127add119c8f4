/** What taking over vCluster's sync means by its values, and where vCluster runs with other values than those of its Helm release. Pure. */

import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type JsonValue,
  ownValue,
  setOwn,
} from '../../base/json.ts';
import { type ConfigPath, Fields, formatPath } from '../../config-file/finding.ts';
import { vclusterDefaults } from '../../shared-config/vcluster-values.ts';
import { withoutEmptyKeys } from '../../config-file/merge.ts';
import { kindsAt, migrationOf, SHARED_KEYS } from '../kinds/synced-kinds.ts';
import type { PatchConfig } from '../patch/patch-schema.ts';
import { patchesIn } from './patch-rules.ts';
import { syncedByVcluster } from './warnings.ts';

/** A kind that this program can sync in the place of vCluster. */
export interface KindTakeover {
  /** Of `sync.toHost`. */
  readonly key: string;
  /** As messages name the objects, such as EndpointSlices. */
  readonly objects: string;
  /** By vCluster, with the values in force. */
  readonly isSynced: boolean;
  /** Of the values; entries that are not patches are omitted. */
  readonly patches: readonly PatchConfig[];
  /** What differs afterwards, and the setting by which it does not. */
  readonly differences: readonly { readonly differs: string; readonly setting: string }[];
  readonly gains: readonly string[];
  /** Rights that vCluster's chart grants with its sync only, and that vCluster needs without it, too. */
  readonly keptRules: readonly JsonObject[];
}

export interface Takeover {
  /** The values in force, without empty keys. */
  readonly theirs: JsonObject;
  /** Where vCluster runs with other values than those given. */
  readonly differences: readonly ValueDifference[];
  readonly kinds: readonly KindTakeover[];
}

/** `inForce`: undefined for the values themselves. */
export function takeoverOf(values: JsonObject, inForce: JsonObject | undefined): Takeover {
  const { values: theirs, differences } =
    inForce === undefined
      ? { values: withoutEmptyKeys(values), differences: [] }
      : valuesInForce(values, inForce);
  const [fields, synced] = [new Fields(theirs), syncedByVcluster(theirs)];
  const kinds = SHARED_KEYS.map((key) => ({
    key,
    objects: kindsAt(key),
    isSynced: synced.includes(key),
    patches: patchesIn(fields.value(`sync.toHost.${key}.patches`)),
    differences: [],
    gains: [],
    keptRules: [],
    ...migrationOf(key),
  }));
  return { theirs, differences, kinds };
}

interface ValueDifference {
  readonly path: ConfigPath;
  /** Undefined: not set, or set to null. */
  readonly released: JsonValue | undefined;
  readonly inForce: JsonValue | undefined;
}

interface ValuesInForce {
  /** The values in force that the release sets, or that are no defaults of vCluster 0.37. Without empty keys. */
  readonly values: JsonObject;
  readonly differences: readonly ValueDifference[];
}

/**
 * Compares what the user gave to Helm with the whole file that vCluster runs with. Helm leaves the two apart after `--reuse-values --set KEY=null`: KEY
 * stays in force, and the record has what was set before among the defaults of the chart, which are therefore not asked. What the release does not
 * set counts where it is about the sync; elsewhere it may be a default of another version of vCluster.
 */
export function valuesInForce(released: JsonObject, inForce: JsonObject): ValuesInForce {
  return compare([], { released, inForce: withoutEmptyKeys(inForce), defaults: vclusterDefaults() });
}

interface Compared {
  readonly released: JsonObject;
  readonly inForce: JsonObject;
  readonly defaults: JsonObject;
}

function compare(at: ConfigPath, { released, inForce, defaults }: Compared): ValuesInForce {
  const values: JsonObject = {};
  const differences: ValueDifference[] = [];
  for (const key of new Set([released, inForce, defaults].flatMap(Object.keys))) {
    const path = [...at, key];
    const [ours, actual] = [ownValue(released, key), ownValue(inForce, key)];
    const standard = ownValue(defaults, key);
    if (isJsonObject(actual) && isJsonObject(ours ?? standard)) {
      const section = { released: sectionOf(ours), inForce: actual, defaults: sectionOf(standard) };
      const inner = compare(path, section);
      differences.push(...inner.differences);
      if (ours !== undefined || Object.keys(inner.values).length > 0) setOwn(values, key, inner.values);
      continue;
    }
    const isUnset = (ours ?? undefined) === undefined && actual === undefined;
    const isSame = isUnset || isSameValue(ours === undefined ? (standard ?? offAs(actual)) : ours, actual);
    if (!isSame && (ours !== undefined || isAboutSync(path)))
      differences.push({ path, released: ours ?? undefined, inForce: actual });
    if (actual !== undefined && (ours !== undefined || !isSame)) setOwn(values, key, actual);
  }
  return { values, differences };
}

function sectionOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** A kind that vCluster 0.37 does not know is off by default. */
function offAs(actual: JsonValue | undefined): JsonValue | undefined {
  return isJsonObject(actual) && actual['enabled'] === false ? actual : undefined;
}

/** An empty list or section is the same as none. */
function isSameValue(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return (isNothing(a) && isNothing(b)) || jsonEquals(withoutNulls(a), withoutNulls(b));
}

function isNothing(value: JsonValue | undefined): boolean {
  return (
    value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

function withoutNulls(value: JsonValue | undefined): JsonObject {
  return withoutEmptyKeys({ value: value ?? null });
}

const SYNC = ['sync', 'experimental.multiNamespaceMode'];

function isAboutSync(path: ConfigPath): boolean {
  const text = formatPath(path);
  return SYNC.some((section) => text === section || text.startsWith(`${section}.`));
}
