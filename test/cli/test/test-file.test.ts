/** The files of test cases: where they are found, and what is wrong in them. */

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { worldFile } from '../../support/world-file.ts';
import { capturedRun } from '../captured-run.ts';
import { BASE, type JsonReport, folder, folderWith, oneCase } from './case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('test files', () => {
  test('an object in the file itself may have null for its lists, as one in a file of objects', async () => {
    const path = folderWith(
      oneCase(`virtual:
  - {apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop, managedFields: null}, subsets: null}
expect:
  host: [{metadata: {name: web-x-shop-x-vc}, subsets: []}]`),
    );
    expect((await capturedRun(['test', path])).code).toBe(0);
  });

  test('folders are searched recursively, hidden ones and node_modules are not', async () => {
    const text = 'config: ../config.yaml\ncases: [{name: found}]\n';
    const path = folderWith({
      ...BASE,
      'a/x.endpoint-syncer-test.yaml': text,
      'b/other.yaml': text,
      'node_modules/endpoint-syncer-test.yaml': text,
      '.hidden/endpoint-syncer-test.yaml': text,
    });
    const { out } = await capturedRun(['test', path, '-o', 'json']);
    expect(JSON.parse(out)).toMatchObject({ passed: 1, failed: 0 });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['no test file', BASE, /^error: no \*endpoint-syncer-test\.yaml at or below /],
    [
      'an unknown key, with its place',
      oneCase('virtual: []\nexpected: {}'),
      /endpoint-syncer-test\.yaml:5:5: cases\[0\]\.expected: unknown key "expected", did you mean "expect"\?\n.*\n {4}\^\n/,
    ],
    [
      'an object that is none',
      oneCase('virtual: [{kind: Endpoints}]'),
      /cases\[0\]\.virtual\[0\]\.metadata\.name: an object of kind Endpoints has no metadata\.name/,
    ],
    [
      'every value of the wrong shape',
      oneCase('virtual: {}\nhost: [7]\nexpect: {skipped: [{kin: Pod}], host: [web]}\nroundTrip: 1'),
      /virtual: must be a list.*host\[0\]: must be an object, or the path of a file.*expect\.host\[0\]: must be a mapping.*skipped\[0\]\.kin: unknown key "kin", did you mean "kind"\?.*roundTrip: must be true or false/s,
    ],
    [
      'a file that does not exist',
      oneCase('virtual: [none.yaml]'),
      /none\.yaml: cannot be read: there is no such file/,
    ],
    [
      'no configuration',
      { 'endpoint-syncer-test.yaml': 'cases: []\n' },
      /config: must be the path of a configuration file/,
    ],
  ])('%s is exit 2', async (_, files, message) => {
    const { code, out, err } = await capturedRun(['test', folderWith(files)]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  test('cases whose objects no API server takes: each file with its place, exit 2', async () => {
    const { code, out, err } = await capturedRun([
      'test',
      worldFile('field/f6-files/field.endpoint-syncer-test.yaml'),
    ]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/ports-outside\.yaml:8:1: ports: .*hostname-as-ip\.yaml:4:29: subsets\[0\]/su);
  });

  test('the examples pass, and their cases cover every entry and branch', async () => {
    const examples = join(import.meta.dirname, '..', '..', '..', 'config');
    const copy = folderWith({});
    cpSync(examples, copy, { recursive: true });
    const { code, out } = await capturedRun(['test', copy, '--coverage', '-o', 'json']);
    const report = JSON.parse(out) as JsonReport;
    expect(report.cases.flatMap(({ mismatches }) => mismatches)).toEqual([]);
    expect(report.coverage?.flatMap(({ missed }) => missed)).toEqual([]);
    expect(code).toBe(0);
    expect(report.passed).toBeGreaterThan(9);
  });
});
