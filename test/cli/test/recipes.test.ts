/** The recipes of docs/patches.md as cases of the command `test`. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { JsonValue } from '../../../src/base/json.ts';
import { capturedRun } from '../captured-run.ts';

/** Value in the virtual cluster and on the host, by recipe. */
const RECIPES: Readonly<Record<string, readonly [virtual: JsonValue, host: JsonValue]>> = {
  'add an annotation': [{ a: '1' }, { a: '1', 'example.com/from': 'virtual' }],
  'remove an annotation': ['x', null],
  'rename a key': [
    { old: '1', b: '2' },
    { b: '2', new: '1', old: null },
  ],
  'give a missing value a default': [{ app: 'web' }, { tier: 'default', app: 'web' }],
  'write the DNS name of a Service on the host': ['db.shop.svc', 'db-x-shop-x-vc.host.svc'],
  'split and join': ['a, b', 'a.internal,b.internal'],
  'decode and encode base64': ['YWJj', 'QUJD'],
  'mask all but the end': ['1234567890', '******7890'],
  "take a value from the virtual cluster's configuration": ['x', 'cluster.test'],
  'use another value in each namespace': ['x', 'production'],
};

test('each recipe passes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-recipes-'));
  try {
    const recipes = documentedRecipes();
    expect(recipes.map(({ what }) => what)).toEqual(Object.keys(RECIPES));
    for (const [at, recipe] of recipes.entries()) writeCase(folder, at, recipe);
    const { code, out } = await capturedRun(['test', folder, '-o', 'json']);
    expect({ code, report: JSON.parse(out) as unknown }).toMatchObject({
      code: 0,
      report: { passed: recipes.length, failed: 0 },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

interface Recipe {
  readonly what: string;
  readonly path: string;
  readonly expression: string;
}

function documentedRecipes(): Recipe[] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/patches.md'), 'utf8');
  const section = text.split('## Recipes\n')[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| ([^|`]*?) \| `(.*?)` \| `(.*)` \|$/gm)].map(
    ([, what = '', path = '', expression = '']) => ({ what, path, expression }),
  );
}

function writeCase(folder: string, at: number, { what, path, expression }: Recipe): void {
  const [virtual, host] = RECIPES[what] ?? [null, null];
  const endpoints = (name: string, value: JsonValue) => ({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, ...(name === 'web' ? { namespace: 'shop' } : {}), ...metadataAt(path, value) },
  });
  const config = {
    networking: { advanced: { clusterDomain: 'cluster.test' } },
    sync: { toHost: { endpoints: { patches: [{ path, expression }] } } },
    endpointSyncer: { name: 'vc', host: { namespace: 'host' } },
  };
  const only = {
    name: what,
    virtual: [endpoints('web', virtual)],
    expect: { host: [endpoints('web-x-shop-x-vc', host)] },
  };
  writeFileSync(join(folder, `config-${at}.yaml`), stringify(config));
  writeFileSync(
    join(folder, `${at}.endpoint-syncer-test.yaml`),
    stringify({ config: `config-${at}.yaml`, cases: [only] }),
  );
}

/** `metadata.annotations`, `metadata.labels` or one key of them. */
function metadataAt(path: string, value: JsonValue): Record<string, JsonValue> {
  const [, map = '', key] = /^metadata\.(\w+)(?:\["(.*)"\])?$/.exec(path) ?? [];
  return { [map]: key === undefined ? value : { [key]: value } };
}
