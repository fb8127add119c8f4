/** The ES modules of the editor's packages, served from node_modules as they are, and the import map that finds them. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';

/** The packages that the page imports by name. Their own dependencies are found from here. */
const ROOTS = [
  '@codemirror/autocomplete',
  '@codemirror/commands',
  '@codemirror/lang-yaml',
  '@codemirror/language',
  '@codemirror/lint',
  '@codemirror/merge',
  '@codemirror/state',
  '@codemirror/view',
  '@lezer/highlight',
];

export interface PageModules {
  /** `{"imports": {"@codemirror/state": "/modules/@codemirror/state.js", …}}` */
  readonly importMap: string;
  /** The text of a module by its URL path; undefined: there is none. */
  read(path: string): string | undefined;
}

/** Reads each file when it is requested. Throws where a package is not installed. */
export function findPageModules(): PageModules {
  const files = new Map<string, string>();
  for (const name of ROOTS) addPackage(name, createRequire(import.meta.url), files);
  const imports = Object.fromEntries([...files.keys()].map((name) => [name, `/modules/${name}.js`]));
  return {
    importMap: JSON.stringify({ imports }),
    read(path) {
      const file = files.get(path.replace(/^\/modules\//, '').replace(/\.js$/, ''));
      return file === undefined ? undefined : readFileSync(file, 'utf8');
    },
  };
}

function addPackage(name: string, from: NodeJS.Require, files: Map<string, string>): void {
  if (files.has(name)) return;
  const { folder, manifest } = findPackage(name, from);
  const entry = moduleEntry(manifest);
  if (entry === undefined) throw new Error(`package ${name} has no ES module`);
  files.set(name, join(folder, entry));
  const dependencies = ownValue(manifest, 'dependencies');
  const below = createRequire(join(folder, 'package.json'));
  for (const dependency of isJsonObject(dependencies) ? Object.keys(dependencies) : [])
    addPackage(dependency, below, files);
}

/** The exports of a package need not name its package.json, so it is looked for above the file that `require` would load. */
function findPackage(name: string, from: NodeJS.Require): { folder: string; manifest: JsonObject } {
  for (let folder = dirname(from.resolve(name)); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = readManifest(join(folder, 'package.json'));
    if (manifest !== undefined && ownValue(manifest, 'name') === name) return { folder, manifest };
  }
  throw new Error(`package ${name} has no package.json`);
}

function readManifest(file: string): JsonObject | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  const value = JSON.parse(text) as JsonValue; // what JSON.parse returns
  return isJsonObject(value) ? value : undefined;
}

/** The file of `import name`, relative to the package's folder. */
function moduleEntry(manifest: JsonObject): string | undefined {
  let entry = ownValue(manifest, 'exports');
  if (isJsonObject(entry) && ownValue(entry, '.') !== undefined) entry = ownValue(entry, '.');
  if (isJsonObject(entry)) entry = ownValue(entry, 'import');
  entry ??= ownValue(manifest, 'module');
  return typeof entry === 'string' ? entry : undefined;
}
