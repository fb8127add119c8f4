/** Kubernetes objects as text: reads them from files, folders and standard input, and prints them as YAML or JSON. */

import { printableJson } from '../../base/excerpt.ts';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeYaml } from '../../base/yaml/write.ts';
import { readDocument, readDocuments } from '../../config-file/document.ts';
import { type ConfigPath, errorAtKey, type Finding } from '../../config-file/finding.ts';
import {
  problemOf,
  syntaxProblems,
  displayName,
  readTextFile,
  cannotBeRead,
} from '../../config-file/source-file.ts';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { type JsonObject, type JsonValue, isJsonObject, ownValue } from '../../base/json.ts';
import { asObject, withLists, type KubeObject, type ObjectMeta } from '../../kube/object.ts';
import { objectProblems, type ObjectRules } from './object-problems.ts';
import { reportProblems, showProgress } from './terminal.ts';

/** Larger than any object that an API server stores (1.5 MiB). */
const OBJECT_BYTES_MAX = 16 * 1024 * 1024;

/** One object: any mapping, but one with a kind has to be what an API server takes. Throws a `ConfigError` with every problem. */
export async function readObject(path: string): Promise<JsonObject> {
  return readMapping(path, (value) =>
    ['apiVersion', 'kind'].some((key) => Object.hasOwn(value, key))
      ? objectProblems(value, { needsPorts: false })
      : [],
  );
}

/** Reads YAML or JSON; `-` is standard input. Throws a `ConfigError` with every problem. */
export async function readMapping(
  path: string,
  check: (value: JsonObject) => readonly Finding[] = () => [],
): Promise<JsonObject> {
  const file = displayName(path);
  const document = readDocument(file, await readTextFile(path, OBJECT_BYTES_MAX));
  const problems = syntaxProblems(document);
  const errors = problems.filter(isError);
  if (errors.length > 0) throw new ConfigError(errors);
  reportProblems(problems);
  if (document.isEmpty) throw new ConfigError([problemOf(file, 'contains no object')]);
  const findings = check(document.value);
  if (findings.length > 0) throw new ConfigError(findings.map((one) => document.problemOf(one)));
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
  return format === 'json' ? `${printableJson(object)}\n` : writeYaml(object, style);
}

// Kubernetes objects from files, folders or standard input: YAML with several documents, or JSON; a List is its items.

const EXTENSIONS = ['.yaml', '.yml', '.json'];
/** Enough for the dump of a large cluster; a larger file would not fit into memory as objects. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;

/** Every object below the given paths, in order; `-` is standard input. Throws a `ConfigError` with everything that cannot be read, or that an API
 * server does not take. */
export async function readObjects(paths: readonly string[], rules: ObjectRules = {}): Promise<KubeObject[]> {
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
    for (const object of parseObjects(displayName(file), text, problems, { ...rules, onDocument }))
      objects.push(object);
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

interface ParseOptions extends ObjectRules {
  /** Gets the offset of the end of each document. */
  readonly onDocument?: (offset: number) => void;
}

/** The objects of all documents that an API server takes; errors are added to `problems`. */
export function parseObjects(
  file: string,
  text: string,
  problems: ConfigProblem[],
  { onDocument, ...rules }: ParseOptions = {},
): KubeObject[] {
  const found: KubeObject[] = [];
  const options = { shape: NO_OBJECT, ...(onDocument && { onDocument }) };
  for (const document of readDocuments(file, text, options)) {
    const errors = syntaxProblems(document).filter(isError);
    problems.push(...errors);
    if (document.isEmpty || errors.length > 0) continue;
    const report = (finding: Finding): void => {
      problems.push(document.problemOf(finding));
    };
    for (const object of objectsIn(document.value, [], { rules, report })) found.push(object);
  }
  return found;
}

interface Reading {
  readonly rules: ObjectRules;
  readonly report: (finding: Finding) => void;
}

/** The object of a document, or the items of a List; `report` gets what an API server does not take. */
function objectsIn(value: JsonValue, path: ConfigPath, reading: Reading): KubeObject[] {
  const { rules, report } = reading;
  if (!isJsonObject(value)) {
    report(errorAtKey(path, NO_OBJECT));
    return [];
  }
  const [kind, items] = [ownValue(value, 'kind'), ownValue(value, 'items')];
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items))
    return items.flatMap((item, index) => objectsIn(item, [...path, 'items', index], reading));
  const problems = objectProblems(value, { ...rules, needsPorts: false });
  for (const problem of problems) report(below(path, problem));
  return problems.length === 0 ? [objectOf(value)] : [];
}

/** The finding about an object that is at `path` of its file. */
export function below(path: ConfigPath, finding: Finding): Finding {
  return { ...finding, path: [...path, ...finding.path] };
}

/** As an API server returns it. The object has no {@link objectProblems}. */
export function objectOf(value: JsonObject): KubeObject {
  const object = asObject(value);
  const { managedFields, ...metadata } = value['metadata'] as JsonObject; // checked, too
  if (managedFields === null) object.metadata = metadata as ObjectMeta; // the same without a member
  return withLists(object);
}
