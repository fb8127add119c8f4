/** The report of a test run as a table, and as JUnit XML. */

import { rmSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { capturedRun } from '../captured-run.ts';
import { BASE, VIRTUAL_WEB, folder, folderWith, oneCase } from './case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FAILING = oneCase(`${VIRTUAL_WEB}
expect: {host: [{metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}}]}`);

describe('the report', () => {
  test('a failing case is exit 1, and the table shows expected and actual values', async () => {
    const { code, out } = await capturedRun(['test', folderWith(FAILING)]);
    expect(code).toBe(1);
    expect(out).toMatch(/ it +\d+ms +FAIL\n/);
    expect(out).toContain('host object web-x-shop-x-vc: metadata.annotations.owner\n');
    expect(out).toContain('    - expected: "shop"\n    + actual:   "team-shop"\n');
    expect(out).toContain('0 of 1 cases passed');
  });

  test('-o junit is XML in which every text is escaped', async () => {
    const path = folderWith({
      'a&b/endpoint-syncer-test.yaml': 'config: ../config.yaml\ncases: [{name: "<it>"}]\n',
      ...BASE,
    });
    const { code, out } = await capturedRun(['test', path, '-o', 'junit']);
    expect(code).toBe(0);
    expect(out).toContain('<testsuites name="endpoint-syncer test" tests="1" failures="0" errors="0">');
    expect(out).toMatch(/classname="[^"]*a&amp;b[^"]*" name="&lt;it&gt;"/);
    const failed = await capturedRun(['test', folderWith(FAILING), '-o', 'junit']);
    expect(failed.out).toMatch(/<failure message="[^"]+">[^<]*- expected: &quot;shop&quot;/);
  });
});
