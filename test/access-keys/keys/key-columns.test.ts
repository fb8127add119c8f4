/** The table column of a scope. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { keyColumns } from '../../../src/access-keys/keys/key-kind.ts';

function shown(column: string, spec: JsonObject): unknown {
  const found = keyColumns().find(({ name }) => name === column);
  return found?.value({ metadata: {}, spec, status: {} }, Date.now());
}

describe('the column SCOPE', () => {
  test.each<[JsonObject, string]>([
    [{}, 'all'],
    [{ scope: {} }, 'nothing'],
    [{ scope: { clusters: [] } }, 'nothing'],
    [{ scope: { clusters: [{ cluster: 'a' }] } }, '1 cluster'],
    [{ scope: { virtualClusters: [{}], spaces: [{}, {}] } }, '1 virtualCluster, 2 spaces'],
    [{ scope: { allowPlatformCli: true, rules: [{}] } }, 'allowPlatformCli, 1 rule'],
  ])('%j is %s', (spec, text) => {
    expect(shown('Scope', spec)).toBe(text);
  });
});
