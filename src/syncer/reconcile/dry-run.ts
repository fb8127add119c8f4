/** Results of a dry run: the writes that the API server accepted with `dryRun=All`, and the objects that cannot be synced. */

import type { Logger } from '../../base/logger.ts';
import type { ClusterName } from '../../kube/types.ts';
import { type KubeObject, type ObjectKey, asJson } from '../../kube/object.ts';
import { hash } from 'node:crypto';
import { isJsonObject, type JsonValue } from '../../base/json.ts';
import { LAST_SYNCED } from '../translate/bookkeeping.ts';

export interface PlannedWrite {
  readonly cluster: ClusterName;
  /** API group of the kind; '' for the core group. */
  readonly group: string;
  readonly kind: string;
  readonly verb: string;
  /** Of the object in that cluster. */
  readonly key: ObjectKey;
  readonly reason: string;
}

/** An object of the virtual cluster. */
export type VirtualObjectId = Pick<DryRunRow, 'group' | 'kind' | 'key'>;

/** One line of the table at the end. */
export interface DryRunRow {
  readonly cluster: ClusterName;
  /** API group of the kind; '' for the core group. */
  readonly group: string;
  readonly kind: string;
  readonly key: ObjectKey;
  /** A verb, or `failed`. */
  readonly action: string;
  readonly reason: string;
}

export class DryRun {
  readonly #logger: Logger;
  /** Verb and content of the last write that was logged, by object. */
  readonly #logged = new Map<string, string>();
  readonly #writes = new Map<string, DryRunRow>();
  /** By kind and key. */
  readonly #failures = new Map<string, DryRunRow>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Records a write that the API server accepted. Logged once per object and content. */
  planned(write: PlannedWrite, before: KubeObject | undefined, after: KubeObject | undefined): void {
    const { group, ...fields } = write;
    const { cluster, kind, verb, key, reason } = fields;
    const id = `${cluster} ${kind} ${group} ${key}`;
    const { lines, digest } = objectDiff(before, after, kind);
    const content = `${verb} ${digest}`;
    this.#writes.set(`${id} ${verb}`, { cluster, group, kind, key, action: verb, reason });
    if (this.#logged.get(id) === content) return;
    this.#logged.set(id, content);
    this.#logger.info({ ...fields, diff: lines }, 'would write');
  }

  /** `reason` undefined: the object can be synced. */
  settled({ group, kind, key }: VirtualObjectId, reason: string | undefined): void {
    const id = `${kind} ${group} ${key}`;
    if (reason === undefined) this.#failures.delete(id);
    else this.#failures.set(id, { cluster: 'virtual', group, kind, key, action: 'failed', reason });
  }

  /** Writes first, then failures, each sorted by name. */
  rows(): readonly DryRunRow[] {
    return [...sorted(this.#writes), ...sorted(this.#failures)];
  }
}

function sorted(rows: ReadonlyMap<string, DryRunRow>): readonly DryRunRow[] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

const LINES_MAX = 50;
const VALUE_CHARS_MAX = 120;
const SERVER_SET = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields'];
const SECRET_MEMBER = /^(data|stringData)\b/;

export interface ObjectDiff {
  /** `- path: value` and `+ path: value`; empty if both are equal. */
  readonly lines: readonly string[];
  /** Hash of the second state, including values that the lines omit. */
  readonly digest: string;
}

/** Undefined: the object does not exist. */
export function objectDiff(
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  kind: string,
): ObjectDiff {
  const [old, next] = [valuesOf(before), valuesOf(after)];
  const digest = hash(
    'sha256',
    JSON.stringify([...next.keys()].toSorted().map((path) => [path, next.get(path)])),
    'hex',
  );
  const lines: string[] = [];
  for (const path of [...new Set([...old.keys(), ...next.keys()])].toSorted()) {
    const [was, is] = [old.get(path), next.get(path)];
    if (was === is) continue;
    if (was !== undefined) lines.push(`- ${path}: ${shown(path, was, kind)}`);
    if (is !== undefined) lines.push(`+ ${path}: ${shown(path, is, kind)}`);
  }
  const left = lines.length - LINES_MAX;
  return { lines: left > 0 ? [...lines.slice(0, LINES_MAX), `… ${left} more`] : lines, digest };
}

/** Path → value as JSON. */
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
