/** Reads and checks a file of test cases for patches. */

import { readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import * as z from 'zod';
import { checkAgainst } from '../../config-file/schema-check.ts';
import { readDocument } from '../../config-file/document.ts';
import type { ConfigPath } from '../../config-file/finding.ts';
import { syntaxProblems, cannotBeRead, readTextFile } from '../../config-file/source-file.ts';
import type { KubeObject } from '../../kube/object.ts';
import { objectProblems, type ObjectRules } from '../output/object-problems.ts';
import { below, collectProblems, objectOf, readObjects } from '../output/objects.ts';

export const TEST_FILE_SUFFIX = 'endpoint-syncer-test.yaml';
const BYTES_MAX = 4 * 1024 * 1024;

export interface TestFile {
  readonly path: string;
  readonly text: string;
  /** Path of the configuration, from the working directory. */
  readonly config: string;
  readonly cases: readonly TestCase[];
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

// The format of a file. What Kubernetes defines, and texts to compare, may have any shape.

const mapping = z.custom<JsonObject>((value) => isMapping(value), 'must be a mapping');

function isMapping(value: unknown): value is JsonObject {
  return isJsonObject(value as JsonValue); // a document is JSON
}

/** Null is an empty list. */
function list<T extends z.ZodType>(of: T) {
  return z
    .array(of)
    .nullable()
    .transform((entries) => entries ?? [])
    .optional();
}

/** Any values of these keys. */
function entry(...keys: readonly string[]) {
  return z.strictObject(Object.fromEntries(keys.map((key) => [key, z.unknown().optional()])));
}

const regarded = entry('kind', 'namespace', 'name').optional();

const expectation = z.strictObject({
  host: list(mapping),
  virtual: list(mapping),
  skipped: list(entry('kind', 'namespace', 'name', 'reason')),
  errors: list(entry('patch', 'path', 'kind', 'contains').extend({ object: regarded })),
  events: list(entry('type', 'reason', 'contains').extend({ object: regarded })),
});

/** An object, or the path of a file or folder with objects. */
const source = z.custom<JsonObject | string>(
  (value) => typeof value === 'string' || isMapping(value),
  'must be an object, or the path of a file',
);

const CONFIG = 'must be the path of a configuration file, relative to this file';
const fileSchema = z.strictObject({
  config: z.string({ error: CONFIG }).min(1),
  cases: list(
    z.strictObject({
      name: z.string({ error: 'must be the name of the case' }).min(1),
      virtual: list(source),
      host: list(source),
      expect: expectation.prefault({}),
      reverse: z.strictObject({ expect: expectation.prefault({}) }).optional(),
      roundTrip: z.boolean().nullish(),
    }),
  ),
});

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

/** Throws a `ConfigError` with every problem of the file, or of the files that it names. */
export async function readTestFile(path: string): Promise<TestFile> {
  const text = await readTextFile(path, BYTES_MAX);
  const document = readDocument(path, text);
  const { data, findings } = checkAgainst(fileSchema, document.value);
  const problems = [
    ...syntaxProblems(document),
    ...(document.isReadable ? findings : []).map((one) => document.problemOf(one)),
  ];
  if (data === undefined || problems.some(({ severity }) => severity === 'error'))
    throw new ConfigError(problems);
  const relative = (other: string): string =>
    other.startsWith('/') ? resolve(other) : join(dirname(path), other);
  const config = relative(data.config);
  const reads = [path, config];
  const objects = async (
    sources: readonly (JsonObject | string)[] = [],
    path: ConfigPath,
    rules?: ObjectRules,
  ): Promise<KubeObject[]> => {
    const found: KubeObject[] = [];
    for (const [index, one] of sources.entries()) {
      if (typeof one === 'string') {
        reads.push(relative(one));
        found.push(...((await collectProblems(readObjects([relative(one)], rules), problems)) ?? []));
        continue;
      }
      const wrong = objectProblems(one, { ...rules, needsPorts: false }).map((finding) =>
        below([...path, index], finding),
      );
      problems.push(...wrong.map((finding) => document.problemOf(finding)));
      if (wrong.length === 0) found.push(objectOf(one));
    }
    return found;
  };
  const cases: TestCase[] = [];
  for (const [index, one] of (data.cases ?? []).entries()) {
    const { name, virtual, host, expect, reverse, roundTrip } = one;
    cases.push({
      name,
      virtual: await objects(virtual, ['cases', index, 'virtual']),
      host: await objects(host, ['cases', index, 'host'], { nameIsEnough: true }),
      expect: expect as Expectation, // a document is JSON
      reverse: reverse && (reverse.expect as Expectation), // the same
      roundTrip: roundTrip === true,
    });
  }
  if (problems.some(({ severity }) => severity === 'error')) throw new ConfigError(problems);
  return { path, text, config, cases, reads };
}
