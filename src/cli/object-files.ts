/** Kubernetes objects from files, folders or standard input: YAML with several documents, or JSON; a List is its items. */

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { LineCounter, parseAllDocuments } from 'yaml';
import { ConfigError, type ConfigProblem } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../lib/json.ts';

const EXTENSIONS = ['.yaml', '.yml', '.json'];
/** YAML aliases may not blow a small file up. */
const ALIASES_MAX = 100;

/** Every object below the given paths, in order; `-` is standard input. Throws a `ConfigError` with everything that cannot be read. */
export async function readObjects(paths: readonly string[]): Promise<KubeObject[]> {
  const objects: KubeObject[] = [];
  const problems: ConfigProblem[] = [];
  for (const path of paths) {
    for (const file of await filesOf(path, problems)) {
      const source = await textOf(file, problems);
      if (source !== undefined) objects.push(...parseObjects(file, source, problems));
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return objects;
}

async function filesOf(path: string, problems: ConfigProblem[]): Promise<string[]> {
  if (path === '-') return [path];
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = await readdir(path, { recursive: true });
    return names
      .filter((name) => EXTENSIONS.some((extension) => name.endsWith(extension)))
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    problems.push(problemIn(path, error instanceof Error ? error.message : String(error)));
    return [];
  }
}

async function textOf(file: string, problems: ConfigProblem[]): Promise<string | undefined> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    problems.push(problemIn(file, error instanceof Error ? error.message : String(error)));
    return undefined;
  }
}

function parseObjects(file: string, source: string, problems: ConfigProblem[]): KubeObject[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(source, { lineCounter: lines, version: '1.2' });
  const found: KubeObject[] = [];
  for (const document of Array.isArray(documents) ? documents : []) {
    for (const { message, pos } of document.errors) {
      const { line, col } = lines.linePos(pos[0]);
      problems.push({ ...problemIn(file, message.split('\n')[0] ?? message), line, column: col });
    }
    if (document.errors.length > 0) continue;
    try {
      const value = document.toJS({ maxAliasCount: ALIASES_MAX }) as JsonValue; // plain data without custom tags
      found.push(...objectsIn(value, file, problems));
    } catch (error) {
      problems.push(problemIn(file, error instanceof Error ? error.message : String(error)));
    }
  }
  return found;
}

function objectsIn(value: JsonValue, file: string, problems: ConfigProblem[]): KubeObject[] {
  if (value === null) return [];
  if (!isJsonObject(value)) {
    problems.push(problemIn(file, 'a document is not an object with apiVersion, kind and metadata'));
    return [];
  }
  const [kind, items] = [ownValue(value, 'kind'), ownValue(value, 'items')];
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items)) {
    return items.flatMap((item) => objectsIn(item, file, problems));
  }
  const problem = objectProblem(value);
  if (problem === undefined) return [value as unknown as KubeObject]; // checked by objectProblem
  problems.push(problemIn(file, problem));
  return [];
}

function objectProblem(value: JsonObject): string | undefined {
  const kind = ownValue(value, 'kind');
  if (typeof kind !== 'string') return 'an object has no kind';
  const metadata = ownValue(value, 'metadata');
  const name = isJsonObject(metadata) ? ownValue(metadata, 'name') : undefined;
  if (typeof name === 'string' && name !== '') return undefined;
  return `a ${kind} has no metadata.name`;
}

function problemIn(file: string, message: string): ConfigProblem {
  return { file, line: 0, column: 0, path: '', severity: 'error', message, frame: '' };
}
