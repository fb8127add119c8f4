/** The pages about keys: every file, flag and command of the one about clusters is tested with a real kube-apiserver. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DISCOVERY_URLS } from '../../src/access-keys/authorization/grants.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';

test('every block of the page is used by the tests with real clusters', () => {
  const names = [...documentedBlocks('keys/connected-clusters.md').keys()];
  const files = [
    'connected-cluster-blocks.ts',
    'trust.test.ts',
    'trust-clusters.ts',
    'token-audiences.test.ts',
    'scope-table.test.ts',
  ];
  const tests = files
    .map((file) => readFileSync(join(import.meta.dirname, '..', 'e2e', file), 'utf8'))
    .join('');
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !tests.includes(`'${name}'`))).toEqual([]);
});

test('the page about scopes names each path that needs none', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'keys', 'scopes.md'), 'utf8');
  const paths = DISCOVERY_URLS.filter((path) => !path.endsWith('/*'));
  expect(paths).toContain('/livez');
  expect(paths.filter((path) => !page.includes(`\`${path}\``))).toEqual([]);
});
