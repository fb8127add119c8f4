/** Every file, flag and command of the page about direct cluster endpoints is tested with a real kube-apiserver. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
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
