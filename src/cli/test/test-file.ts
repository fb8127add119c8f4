/** Reads and checks a file of test cases for patches. */

import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ConfigError, type ConfigProblem } from '../../base/errors.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import { errorAtKey, errorAtValue, type Finding, type ConfigPath } from '../../config/finding.ts';
import { didYouMean } from '../../config/schema/suggest.ts';
import { readDocument, type ConfigDocument } from '../../config/document.ts';
import { syntaxProblems, cannotBeRead, readTextFile } from '../../config/source-file.ts';
import type { KubeObject } from '../../kube/object.ts';
import { objectOf, objectProblem, readObjects } from '../output/objects.ts';

/** The end of the names of test files. */
export const TEST_FILE_SUFFIX = 'endpoint-syncer-test.yaml';
const BYTES_MAX = 4 * 1024 * 1024;

export interface TestFile {
  readonly path: string;
  readonly text: string;
  /** Path of the configuration, from the working directory. */
  readonly config: string;
  readonly cases: readonly TestCase[];
  /** Every file that a run reads. */
  readonly reads: readonly string[];
}

export interface TestCase {
  readonly name: string;
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
  readonly expect: Expectation;
  readonly reverse: Expectation | undefined;
  readonly roundTrip: boolean;
}

/** A member that is undefined is not compared. */
export interface Expectation {
  readonly host?: readonly JsonObject[];
  readonly virtual?: readonly JsonObject[];
  readonly skipped?: readonly JsonObject[];
  readonly errors?: readonly JsonObject[];
  readonly events?: readonly JsonObject[];
}

/** Members of an {@link Expectation}, with the keys of their entries; undefined: an object of any shape. */
const EXPECTATION: Readonly<Record<keyof Expectation, readonly string[] | undefined>> = {
  host: undefined,
  virtual: undefined,
  skipped: ['kind', 'namespace', 'name', 'reason'],
  errors: ['object', 'patch', 'path', 'kind', 'contains'],
  events: ['object', 'type', 'reason', 'contains'],
};
const REGARDED_KEYS = ['kind', 'namespace', 'name'];
const CASE_KEYS = ['name', 'virtual', 'host', 'expect', 'reverse', 'roundTrip'];

/** Test files at or below the given paths, in order. A file that is given itself may have any name. */
export async function findTestFiles(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const isFolder = (await stat(path).catch(failRead(path))).isDirectory();
    found.push(...(isFolder ? await testFilesBelow(path) : [path]));
  }
  return [...new Set(found)];
}

async function testFilesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(failRead(folder));
  const found: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isFile() && entry.name.endsWith(TEST_FILE_SUFFIX)) found.push(path);
    if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
      found.push(...(await testFilesBelow(path)));
  }
  return found;
}

function failRead(path: string): (error: unknown) => never {
  return (error) => {
    throw cannotBeRead(path, error);
  };
}

/** Throws a `ConfigError` with every problem of the file and of the files that it names. */
export async function readTestFile(path: string): Promise<TestFile> {
  const text = await readTextFile(path, BYTES_MAX);
  const document = readDocument(path, text);
  const reader = new TestFileReader(path, document);
  const file = await reader.read(text);
  const problems = [...syntaxProblems(document), ...reader.problems];
  if (problems.some(({ severity }) => severity === 'error')) throw new ConfigError(problems);
  return file;
}

class TestFileReader {
  readonly problems: ConfigProblem[] = [];
  readonly #path: string;
  readonly #document: ConfigDocument;
  readonly #reads: string[];

  constructor(path: string, document: ConfigDocument) {
    this.#path = path;
    this.#document = document;
    this.#reads = [path];
  }

  async read(text: string): Promise<TestFile> {
    const { value, isReadable } = this.#document;
    const config = isReadable ? this.#configOf(value) : '';
    const cases: TestCase[] = [];
    for (const [index, entry] of (isReadable ? this.#list(value, ['cases']) : []).entries())
      cases.push(await this.#case(entry, ['cases', index]));
    return { path: this.#path, text, config, cases, reads: this.#reads };
  }

  #configOf(value: JsonObject): string {
    this.#checkKeys(value, [], ['config', 'cases']);
    const config = ownValue(value, 'config');
    if (typeof config !== 'string' || config === '') {
      this.#report(
        errorAtValue(['config'], 'must be the path of a configuration file, relative to this file'),
      );
      return '';
    }
    if (ownValue(value, 'cases') === undefined) this.#report(errorAtKey([], 'has no cases'));
    const path = this.#relative(config);
    this.#reads.push(path);
    return path;
  }

  async #case(entry: JsonValue, path: ConfigPath): Promise<TestCase> {
    const value = this.#object(entry, path);
    this.#checkKeys(value, path, CASE_KEYS);
    const name = ownValue(value, 'name');
    if (typeof name !== 'string' || name === '')
      this.#report(errorAtValue([...path, 'name'], 'must be the name of the case'));
    const roundTrip = ownValue(value, 'roundTrip') ?? false;
    if (typeof roundTrip !== 'boolean')
      this.#report(errorAtValue([...path, 'roundTrip'], 'must be true or false'));
    const reverse = ownValue(value, 'reverse');
    if (isJsonObject(reverse)) this.#checkKeys(reverse, [...path, 'reverse'], ['expect']);
    return {
      name: typeof name === 'string' ? name : '',
      virtual: await this.#objects(value, [...path, 'virtual']),
      host: await this.#objects(value, [...path, 'host']),
      expect: this.#expectation(value, [...path, 'expect']),
      reverse:
        reverse === undefined
          ? undefined
          : this.#expectation(this.#object(reverse, [...path, 'reverse']), [...path, 'reverse', 'expect']),
      roundTrip: roundTrip === true,
    };
  }

  /** The objects of one side: paths of files and folders, and objects that are written here. */
  async #objects(parent: JsonObject, path: ConfigPath): Promise<KubeObject[]> {
    const objects: KubeObject[] = [];
    for (const [index, entry] of this.#list(parent, path).entries()) {
      const problem = isJsonObject(entry) ? objectProblem(entry) : undefined;
      if (problem !== undefined) this.#report(errorAtValue([...path, index], problem));
      else if (isJsonObject(entry)) objects.push(objectOf(entry));
      else if (typeof entry === 'string') objects.push(...(await this.#fromFile(this.#relative(entry))));
      else this.#report(errorAtValue([...path, index], 'must be an object, or the path of a file'));
    }
    return objects;
  }

  async #fromFile(path: string): Promise<KubeObject[]> {
    this.#reads.push(path);
    try {
      return await readObjects([path]);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.problems.push(...error.problems);
      return [];
    }
  }

  #expectation(parent: JsonObject, path: ConfigPath): Expectation {
    const value = ownValue(parent, 'expect');
    if (value === undefined) return {};
    const object = this.#object(value, path);
    this.#checkKeys(object, path, Object.keys(EXPECTATION));
    const expectation: Record<string, JsonObject[]> = {};
    for (const [member, keys] of Object.entries(EXPECTATION)) {
      if (ownValue(object, member) === undefined) continue;
      const at = [...path, member];
      expectation[member] = this.#list(object, at).map((entry, index) => {
        const expected = this.#object(entry, [...at, index]);
        if (keys !== undefined) this.#checkKeys(expected, [...at, index], keys);
        if (keys?.includes('object') === true) this.#checkRegarded(expected, [...at, index, 'object']);
        return expected;
      });
    }
    return expectation;
  }

  #checkRegarded(entry: JsonObject, path: ConfigPath): void {
    const value = ownValue(entry, 'object');
    if (value !== undefined) this.#checkKeys(this.#object(value, path), path, REGARDED_KEYS);
  }

  /** The list that is the last step of the path; empty where there is none. */
  #list(parent: JsonObject, path: ConfigPath): readonly JsonValue[] {
    const value = ownValue(parent, String(path.at(-1)));
    if (Array.isArray(value)) return value;
    if (value !== undefined && value !== null) this.#report(errorAtValue(path, 'must be a list'));
    return [];
  }

  #object(value: JsonValue, path: ConfigPath): JsonObject {
    if (isJsonObject(value)) return value;
    this.#report(errorAtValue(path, 'must be a mapping'));
    return {};
  }

  #checkKeys(object: JsonObject, path: ConfigPath, known: readonly string[]): void {
    for (const key of Object.keys(object)) {
      if (known.includes(key)) continue;
      const hint = didYouMean(key, known) || `; known here: ${known.join(', ')}`;
      this.#report(errorAtKey([...path, key], `unknown key ${JSON.stringify(key)}${hint}`));
    }
  }

  #relative(path: string): string {
    return path.startsWith('/') ? resolve(path) : join(dirname(this.#path), path);
  }

  #report(finding: Finding): void {
    this.problems.push(this.#document.problemOf(finding));
  }
}
