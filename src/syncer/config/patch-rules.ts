/** Rules for `patches` beyond the types of their members. They read the file as written, even if it is invalid elsewhere. */

import * as z from 'zod';
import { type JsonObject, type JsonValue, isJsonObject, ownValue } from '../../base/json.ts';
import {
  errorAtValue,
  type Finding,
  type ConfigPath,
  formatPath,
  isSet,
  textMember,
} from '../../config-file/finding.ts';
import { show } from '../../config-file/schema-fields.ts';
import { SHARED_KINDS, syncableKind } from '../kinds/synced-kinds.ts';
import { checkPatch, pathSegments, type PathSegment } from '../patch/check-patch.ts';
import { ONE_MODE, patchSchema, WHOLE_REFERENCE, type PatchConfig } from '../patch/patch-schema.ts';
import { isProtected } from '../patch/protect.ts';

/**
 * Checks a list of patches at `path`; entries that are not mappings are reported by the schema check. `list`: the key of `sync.toHost` that has it;
 * absent for a file of patches alone, which may be for any kind.
 */
export function checkPatches(patches: JsonValue | undefined, path: ConfigPath, list?: string): Finding[] {
  if (!Array.isArray(patches)) return [];
  const entries = patches.map((entry) => (isJsonObject(entry) ? entry : undefined));
  const each = entries.flatMap((entry, index) =>
    entry === undefined ? [] : checkEntry(entry, [...path, index], list),
  );
  return [...each, ...duplicatePaths(entries, path)];
}

function checkEntry(entry: JsonObject, path: ConfigPath, list: string | undefined): Finding[] {
  const findings: Finding[] = [...ONE_MODE.check(entry, path), ...WHOLE_REFERENCE.check(entry, path)];
  const target = textMember(entry, 'path');
  if (target !== undefined) findings.push(...checkTarget(target, path));
  const patch = patchOf(entry);
  if (patch === undefined) return findings;
  const kind = syncableKind(list);
  const limits = kind ?? { members: SHARED_KINDS.flatMap(({ members }) => members) };
  for (const { field, message, offset, severity } of checkPatch(patch, kind?.fields, limits)) {
    const finding = errorAtValue([...path, ...field.split('.')], message, offset);
    findings.push(severity === undefined ? finding : { ...finding, severity });
  }
  return findings;
}

const SERVER_SETS_IT = 'each API server sets its own';
const TRANSLATED = 'the translation depends on it';
/** Of protected metadata that no API server sets. */
const METADATA_REASONS: Readonly<Record<string, string>> = {
  name: TRANSLATED,
  namespace: TRANSLATED,
  uid: TRANSLATED,
  annotations: TRANSLATED,
  labels: TRANSLATED,
  finalizers: 'a copy would stay forever, because no controller of the host removes it',
  ownerReferences: 'the host deletes a copy with its owner; endpointSyncer.owner sets one',
};

/** The metadata of an object other than its annotations and labels, and its bookkeeping keys, must stay as the translation wrote them. */
function checkTarget(target: string, path: ConfigPath): Finding[] {
  const [first, second, third] = pathSegments(target) ?? [];
  if (first !== 'metadata' || typeof second !== 'string') return [];
  const refuse = (what: string): Finding[] => [
    errorAtValue(
      [...path, 'path'],
      `${what} cannot be patched: ${METADATA_REASONS[second] ?? SERVER_SETS_IT}`,
    ),
  ];
  if (isProtected([first, second])) return refuse(`metadata.${second}`);
  const isBookkeeping = typeof third === 'string' && isProtected([first, second, third]);
  return isBookkeeping ? refuse(`the bookkeeping key ${show(third)}`) : [];
}

/**
 * Two entries with one path would depend on their order, except references to different parts of the value. Paths are compared by their
 * segments, not by their text.
 */
function duplicatePaths(entries: readonly (JsonObject | undefined)[], path: ConfigPath): Finding[] {
  const earlier = new Map<string, { index: number; text: string; part: string | undefined }[]>();
  return entries.flatMap((entry, index) => {
    const text = entry === undefined ? undefined : textMember(entry, 'path');
    if (entry === undefined || text === undefined) return [];
    const meaning = meaningOf(pathSegments(text), text);
    const part = referencedPart(entry);
    const others = earlier.get(meaning) ?? [];
    earlier.set(meaning, [...others, { index, text, part }]);
    const before = others.findLast((other) => part === undefined || !other.part || other.part === part);
    if (before === undefined) return [];
    const both = `${formatPath([...path, before.index])} and ${formatPath([...path, index])}`;
    const written = before.text === text ? JSON.stringify(text) : `${show(before.text)} = ${show(text)}`;
    const areReferences = [entry, entries[before.index]].every((one) => one && isSet(one, 'reference'));
    const hint = areReferences ? ': several references to one value need different namePaths' : '';
    return [errorAtValue([...path, index, 'path'], `${both} have the same path ${written}${hint}`)];
  });
}

/** Which part of the value a reference changes; undefined: all of it, or the entry is no reference. */
function referencedPart(entry: JsonObject): string | undefined {
  const reference = ownValue(entry, 'reference');
  if (!isJsonObject(reference) || ONE_MODE.check(entry, []).length > 0) return undefined;
  const key = ['namePath', 'namespacePath'].find((one) => isSet(reference, one));
  const text = key === undefined ? undefined : textMember(reference, key);
  return text === undefined ? undefined : `${key} ${meaningOf(pathSegments(text), text)}`;
}

function meaningOf(segments: readonly PathSegment[] | undefined, text: string): string {
  if (segments === undefined) return `text ${text}`;
  // `subsets.0` and `subsets[0]` are one place.
  return JSON.stringify(segments.map((segment) => (typeof segment === 'number' ? String(segment) : segment)));
}

/** The entries as `PatchConfig`; entries that are not patches are omitted. */
export function patchesIn(patches: JsonValue | undefined): PatchConfig[] {
  const entries = Array.isArray(patches) ? patches.filter(isJsonObject) : [];
  return entries.map(patchOf).filter((patch) => patch !== undefined);
}

/** Undefined without a path. */
function patchOf(entry: JsonObject): PatchConfig | undefined {
  const hasPath = textMember(entry, 'path') !== undefined;
  return hasPath ? (membersOf(entry, patchSchema) as PatchConfig) : undefined; // each member has the schema's type
}

/** The members that the schema knows, each of its type. Another one is omitted, so that it hides no other problem; so is an empty text, but for one
 * that is required. */
function membersOf(object: JsonObject, { shape }: z.ZodObject): JsonObject {
  const entries = Object.entries(shape).map(([key, schema]) => {
    const type: unknown = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
    const value = ownValue(object, key);
    if (type instanceof z.ZodObject)
      return [key, isJsonObject(value) ? membersOf(value, type) : undefined] as const;
    const text = textMember(object, key) ?? '';
    return [key, text === '' && type !== schema ? undefined : text] as const;
  });
  return Object.fromEntries(entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}
