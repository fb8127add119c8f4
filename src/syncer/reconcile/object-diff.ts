/** What differs between two states of an object, by path. */

import { hash } from 'node:crypto';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { asJson, type KubeObject } from '../../kube/object.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';

const LINES_MAX = 50;
const VALUE_CHARS_MAX = 120;
const SERVER_SET = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields'];
const SECRET_MEMBER = /^(data|stringData)\b/;

/** `lines`: `- path: value` and `+ path: value`; empty if both are equal. `digest`: hash of the second state, with the values that the lines omit.
 * Undefined: the object does not exist. */
export function objectDiff(
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  kind: string,
): { readonly lines: readonly string[]; readonly digest: string } {
  const next = valuesOf(after);
  const digest = hash(
    'sha256',
    JSON.stringify([...next.keys()].toSorted().map((path) => [path, next.get(path)])),
    'hex',
  );
  const lines: string[] = [];
  for (const { path, was, is } of differences(before, after)) {
    if (was !== undefined) lines.push(`- ${path}: ${shown(path, was, kind)}`);
    if (is !== undefined) lines.push(`+ ${path}: ${shown(path, is, kind)}`);
  }
  const left = lines.length - LINES_MAX;
  return { lines: left > 0 ? [...lines.slice(0, LINES_MAX), `… ${left} more`] : lines, digest };
}

/** Where two states of an object differ, the record of the sync aside; a missing member and null are the same. Sorted. */
export function changedPaths(before: KubeObject, after: KubeObject): readonly string[] {
  return differences(before, after).flatMap(({ path, was = 'null', is = 'null' }) =>
    was === is ? [] : [path],
  );
}

function differences(before: KubeObject | undefined, after: KubeObject | undefined) {
  const [old, next] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...next.keys()])]
    .toSorted()
    .map((path) => ({ path, was: old.get(path), is: next.get(path) }))
    .filter(({ was, is }) => was !== is);
}

const PATHS_MAX = 5;

export function listedPaths(paths: readonly string[]): string {
  const rest = paths.length > PATHS_MAX ? ` and ${paths.length - PATHS_MAX} more` : '';
  return `${paths.slice(0, PATHS_MAX).join(', ')}${rest}`;
}

function valuesOf(object: KubeObject | undefined): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  if (object === undefined) return values;
  const { metadata, ...rest } = asJson(object);
  const known = isJsonObject(metadata) ? { ...metadata } : {};
  for (const member of SERVER_SET) delete known[member];
  const annotations = isJsonObject(known['annotations']) ? { ...known['annotations'] } : {};
  delete annotations[LAST_SYNCED];
  known['annotations'] = annotations;
  collect({ ...rest, metadata: known }, '', values);
  return values;
}

function collect(value: JsonValue, path: string, values: Map<string, string>): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) collect(item, `${path}[${index}]`, values);
    return;
  }
  if (!isJsonObject(value)) {
    values.set(path, JSON.stringify(value));
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    const isWord = /^[A-Za-z_][\w-]*$/.test(key);
    collect(member, isWord ? `${path === '' ? '' : `${path}.`}${key}` : `${path}["${key}"]`, values);
  }
}

function shown(path: string, text: string, kind: string): string {
  if (kind === 'Secret' && SECRET_MEMBER.test(path)) return '(not shown)';
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}
