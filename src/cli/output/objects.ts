/** Kubernetes objects as text: reads them from files, folders and standard input, and prints them as YAML or JSON. */

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeYaml } from '../../base/yaml/write.ts';
import { readDocument, readDocuments } from '../../config/document.ts';
import { type ConfigPath, errorAtKey } from '../../config/finding.ts';
import {
  problemOf,
  syntaxProblems,
  displayName,
  readTextFile,
  cannotBeRead,
} from '../../config/source-file.ts';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue, textAt, valueAt } from '../../base/json.ts';
import { labelProblem, pathSegmentProblem, subdomainProblem } from '../../kube/names.ts';
import { asObject, withLists, type KubeObject, type ObjectMeta, apiVersionOf } from '../../kube/object.ts';
import { reportProblems, showProgress } from './terminal.ts';
import { isBookkeepingAnnotation } from '../../syncer/translate/bookkeeping.ts';
import { isBookkeepingLabel, stringMapOf } from '../../syncer/translate/labels.ts';
import { allowEverything } from '../../apiserver/request/request-info.ts';
import { validateMetadata } from '../../apiserver/metadata.ts';
import type { ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { decodeObject, DecodeError } from '../../apiserver/schema/decode.ts';
import { META_TYPES, TypeTable } from '../../apiserver/schema/object-schema.ts';
import { builtInKinds } from '../../embedded-cluster/kinds/built-in-kinds.ts';

/** Larger than any object that an API server stores (1.5 MiB). */
const OBJECT_BYTES_MAX = 16 * 1024 * 1024;

/** Reads YAML or JSON; `-` is standard input. Throws a `ConfigError` with every problem. */
export async function readObject(path: string): Promise<JsonObject> {
  const file = displayName(path);
  const document = readDocument(file, await readTextFile(path, OBJECT_BYTES_MAX));
  const problems = syntaxProblems(document);
  const errors = problems.filter(isError);
  if (errors.length > 0) throw new ConfigError(errors);
  reportProblems(problems);
  if (document.isEmpty) throw new ConfigError([problemOf(file, 'contains no object')]);
  return document.value;
}

function isError({ severity }: ConfigProblem): boolean {
  return severity === 'error';
}

/** `isSorted`: keys in alphabetical order, as kubectl prints them. */
export function printObject(
  object: JsonObject,
  format: 'yaml' | 'json',
  style: { readonly isSorted?: boolean } = {},
): string {
  return format === 'json' ? `${JSON.stringify(object, null, 2)}\n` : writeYaml(object, style);
}

// Kubernetes objects from files, folders or standard input: YAML with several documents, or JSON; a List is its items.

const EXTENSIONS = ['.yaml', '.yml', '.json'];
/** Enough for the dump of a large cluster; a larger file would not fit into memory as objects. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;

/** Every object below the given paths, in order; `-` is standard input. Throws a `ConfigError` with everything that cannot be read. */
export async function readObjects(paths: readonly string[]): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  const problems: ConfigProblem[] = [];
  const files: string[] = [];
  for (const path of paths) files.push(...((await collectProblems(filesOf(path), problems)) ?? []));
  using progress = showProgress('reading');
  for (const [index, file] of files.entries()) {
    const text = await collectProblems(readTextFile(file, FILE_BYTES_MAX), problems);
    if (text === undefined) continue;
    const onDocument = (offset: number): void =>
      files.length > 1 ? progress.update(index, files.length) : progress.update(offset, text.length);
    for (const object of parseObjects(displayName(file), text, problems, onDocument)) objects.push(object);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return objects;
}

/** The result, or undefined after adding the problems of a `ConfigError` to `problems`. */
export async function collectProblems<T>(
  reading: Promise<T>,
  problems: ConfigProblem[],
): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

async function filesOf(path: string): Promise<string[]> {
  const isFolder = path !== '-' && (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder) return [path];
  const names = await readdir(path, { recursive: true }).catch((error: unknown) => {
    throw cannotBeRead(path, error);
  });
  return names
    .filter((name) => EXTENSIONS.some((extension) => name.endsWith(extension)))
    .sort()
    .map((name) => join(path, name));
}

const NO_OBJECT = 'a document must be an object with apiVersion, kind and metadata';

/** The objects of all valid documents; errors are added to `problems`. `onDocument` gets the offset of the end of each document. */
export function parseObjects(
  file: string,
  text: string,
  problems: ConfigProblem[],
  onDocument?: (offset: number) => void,
): KubeObject[] {
  const found: KubeObject[] = [];
  const options = { shape: NO_OBJECT, ...(onDocument && { onDocument }) };
  for (const document of readDocuments(file, text, options)) {
    const errors = syntaxProblems(document).filter(isError);
    problems.push(...errors);
    if (document.isEmpty || errors.length > 0) continue;
    const report = (path: ConfigPath, message: string): void => {
      problems.push({ ...document.problemOf(errorAtKey(path, message)), path: '' });
    };
    for (const object of objectsIn(document.value, [], report)) found.push(object);
  }
  return found;
}

/** The object of a document, or the items of a List; `report` gets what is neither. */
function objectsIn(
  value: JsonValue,
  path: ConfigPath,
  report: (path: ConfigPath, message: string) => void,
): KubeObject[] {
  if (!isJsonObject(value)) {
    report(path, NO_OBJECT);
    return [];
  }
  const [kind, items] = [ownValue(value, 'kind'), ownValue(value, 'items')];
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items))
    return items.flatMap((item, index) => objectsIn(item, [...path, 'items', index], report));
  const problem = objectProblem(value);
  if (problem === undefined) return [objectOf(value)];
  report(path, problem);
  return [];
}

/** As an API server returns it. The object has no {@link objectProblem}. */
export function objectOf(value: JsonObject): KubeObject {
  const object = asObject(value);
  const { managedFields, ...metadata } = value['metadata'] as JsonObject; // checked, too
  if (managedFields === null) object.metadata = metadata as ObjectMeta; // the same without a member
  return withLists(object);
}

/** Why this is not a Kubernetes object; undefined if it is one. */
export function objectProblem(value: JsonObject): string | undefined {
  const kind = ownValue(value, 'kind');
  if (typeof kind !== 'string') return 'an object has no kind';
  const [name, apiVersion] = [textAt(value, 'metadata', 'name'), textAt(value, 'apiVersion')];
  const namespace = valueAt(value, ['metadata', 'namespace']) ?? '';
  if (name === '') return `an object of kind ${kind} has no metadata.name`;
  if (apiVersion === '') return `${kind} ${JSON.stringify(name)} has no apiVersion`;
  // Roles and their like have names such as system:node.
  const isRole = apiVersion.startsWith('rbac.authorization.k8s.io/');
  const problem = isRole ? pathSegmentProblem(name) : subdomainProblem(name);
  if (problem !== undefined)
    return `${kind} ${JSON.stringify(name)} has a name that no object can have: ${problem}`;
  if (typeof namespace !== 'string' || (namespace !== '' && labelProblem(namespace) !== undefined))
    return `${kind} "${name}" is in namespace ${JSON.stringify(namespace)}, which no cluster can have`;
  return typeProblem(value);
}

export const SERVER_SET = ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields'];

/** A copy without the bookkeeping annotations and the marker labels. */
export function withoutBookkeeping(object: KubeObject): KubeObject {
  return withoutKeys(object, (member, key) =>
    member === 'annotations' ? isBookkeepingAnnotation(key) : isBookkeepingLabel(key),
  );
}

export function withoutKeys(
  object: KubeObject,
  isHidden: (member: 'annotations' | 'labels', key: string) => boolean,
): KubeObject {
  const metadata: ObjectMeta = { ...object.metadata };
  for (const member of ['annotations', 'labels'] as const) {
    const kept = Object.entries(stringMapOf(metadata[member])).filter(([key]) => !isHidden(member, key));
    if (kept.length > 0) metadata[member] = Object.fromEntries(kept);
    else delete metadata[member];
  }
  return { ...object, metadata };
}

// Whether an API server would take an object of a built-in kind: the types of its fields, and its labels and annotations.

type Rules = Pick<ResourceDefinition, 'schema' | 'checkName' | 'needsQualifiedFinalizers'>;

let known: ReadonlyMap<string, Rules> | undefined;
/** Of kinds that are not built in, only the metadata is checked. */
let other: Rules | undefined;

export function typeProblem(object: JsonObject): string | undefined {
  known ??= new Map(
    builtInKinds(allowEverything).all.map((one) => [`${apiVersionOf(one)} ${one.kind}`, one]),
  );
  other ??= {
    schema: new TypeTable([META_TYPES, 'Object = metadata:1 meta.ObjectMeta']).get('Object'),
    checkName: pathSegmentProblem,
    needsQualifiedFinalizers: false,
  };
  const rules = known.get(`${textAt(object, 'apiVersion')} ${textAt(object, 'kind')}`) ?? other;
  const checked = rules === other ? { metadata: object['metadata'] ?? null } : object;
  try {
    const { metadata } = decodeObject(rules.schema, checked).value;
    // A namespace that is not set is the one of the command.
    const [error] = isJsonObject(metadata)
      ? validateMetadata(metadata, { ...rules, isNamespaced: false })
      : [];
    return error && `no API server takes this object: ${error.field}: ${error.message}`;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return `no API server takes this object: ${error.message}`;
  }
}
