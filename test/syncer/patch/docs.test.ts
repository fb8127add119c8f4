/** Compares docs/patches.md, and the list of refused names in docs/reference.md, with the program. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { compilePatches } from '../../../src/syncer/patch/compile.ts';
import { refusalRows } from '../../../src/expressions/front-end/scope.ts';
import { TestSandbox } from '../../expressions/test-sandbox.ts';
import { build, context } from './build.ts';

const DOCS = join(import.meta.dirname, '../../../docs');

function rowsBelow(heading: string, page = 'patches.md'): readonly string[] {
  const text = readFileSync(join(DOCS, page), 'utf8');
  const section = text.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return section.split('\n').filter((line) => line.startsWith('| ') && !/^\| (refused|to) \|/.test(line));
}

test('the list of refused names, a row for each reason, is equal to that of the compiler', () => {
  const cells = (row: string) => /^\| (.*?) \| (.*) \|$/.exec(row)?.slice(1) ?? [];
  const documented = rowsBelow('Names that an expression may not use', 'reference.md').map(cells);
  const reasons = Map.groupBy(refusalRows().map(cells), ([, reason]) => reason);
  expect(documented).toEqual(
    [...reasons].map(([reason, group]) => [group.map(([name]) => name).join(', '), reason]),
  );
});

function recipesBelow(heading: string) {
  return rowsBelow(heading).map((row) => {
    const [, what = '', path = '', expression = ''] = /^\| (.*?) \| `(.*?)` \| `(.*)` \|$/.exec(row) ?? [];
    return { what, path, expression };
  });
}

describe('each recipe gives the documented result', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    const config = { networking: { advanced: { clusterDomain: 'cluster.test' } } };
    sandbox = await TestSandbox.open({ vcluster: { name: 'vc', namespace: 'ns', config } });
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const recipes = recipesBelow('Recipes');
  const cases: readonly [what: string, value: JsonValue, expected: JsonValue][] = [
    ['add an annotation', { a: '1' }, { a: '1', 'example.com/from': 'virtual' }],
    ['remove an annotation', 'x', null],
    ['rename a key', { old: '1', b: '2' }, { b: '2', new: '1' }],
    ['give a missing value a default', { app: 'web' }, { tier: 'default', app: 'web' }],
    ['write the DNS name of a Service on the host', 'db.shop.svc', 'db-x-shop-x-vc.ns.svc'],
    ['split and join', 'a, b', 'a.internal,b.internal'],
    ['decode and encode base64', 'YWJj', 'QUJD'],
    ['mask all but the end', '1234567890', '******7890'],
    ["take a value from the virtual cluster's configuration", 'x', 'cluster.test'],
    ['use another value in each namespace', 'x', 'production'],
  ];

  test('all recipes are run', () => {
    expect(recipes.map(({ what }) => what)).toEqual(cases.map(([what]) => what));
  });

  test.each(cases)('%s', async (what, value, expected) => {
    const { path = '', expression = '' } = recipes.find((recipe) => recipe.what === what) ?? {};
    expect(() => compilePatches([{ path, expression }])).not.toThrow();
    const virtualObject: JsonObject = { metadata: { namespace: 'shop' } };
    expect(await sandbox.run(expression, value, { virtualObject })).toEqual({ value: expected });
  });
});

describe('each recipe with a filter gives the documented result', () => {
  const recipes = recipesBelow('Recipes with filters');
  const ADDRESSES = [
    { ip: '192.168.0.1', nodeName: 'edge-1', hostname: 'a' },
    { ip: '10.0.0.1', hostname: 'b' },
  ];
  const PORTS = [
    { name: 'http', port: 80 },
    { name: 'https', port: 443 },
  ];
  const cases: readonly [what: string, field: string, expected: JsonValue][] = [
    ['move one port, by its name', 'ports', [PORTS[0] ?? null, { name: 'https', port: 8443 }]],
    ['leave out the addresses of one network', 'addresses', [ADDRESSES[1] ?? null]],
    [
      'change the addresses of one node',
      'addresses',
      [{ ip: '192.168.0.1', nodeName: 'edge-1', hostname: 'edge-a' }, ADDRESSES[1] ?? null],
    ],
    ['fill in a template in any annotation', 'url', 'https://web.test'],
    ['remove the annotations of one program', 'argocd.argoproj.io/sync', null],
  ];

  test('all recipes are run', () => {
    expect(recipes.map(({ what }) => what)).toEqual(cases.map(([what]) => what));
  });

  test.each(cases)('%s', async (what, field, expected) => {
    const { path = '', expression = '' } = recipes.find((recipe) => recipe.what === what) ?? {};
    const annotations = { url: 'https://{{name}}.test', 'argocd.argoproj.io/sync': 'x', other: 'y' };
    const virtualObject = {
      metadata: { name: 'web', annotations },
      subsets: [{ addresses: ADDRESSES, ports: PORTS }],
    };
    const { pipeline } = build([{ path, expression }]);
    const { object } = await pipeline.apply('toHost', virtualObject, context({ virtualObject }));
    const [subset] = object['subsets'] as JsonObject[];
    const { annotations: after } = object['metadata'] as JsonObject;
    expect({ ...subset, ...(after as JsonObject) }[field] ?? null).toEqual(expected);
    expect(after).toMatchObject({ other: 'y' });
  });
});
