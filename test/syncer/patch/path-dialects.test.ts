/** Paths of other tools get the path that works here: it parses, and can match. */

import { describe, expect, test } from 'vitest';
import { endpointsFields } from '../../../src/syncer/kinds/endpoints.ts';
import { checkPatch } from '../../../src/syncer/patch/check-patch.ts';
import { inOwnDialect } from '../../../src/syncer/patch/path-dialects.ts';

const HTTPS = 'subsets[*].ports[?(@.name === "https")].port';
const OWNER = 'metadata.annotations["example.com/owner"]';

describe.each([
  ['Kustomize', "subsets[*].ports[name='https'].port", HTTPS],
  ['Kustomize', 'subsets[*].ports[name=https].port', HTTPS],
  ['Kustomize', 'subsets[*].ports.[name=https].port', HTTPS],
  ['a condition without @', 'subsets[*].ports[name == "https"].port', HTTPS],
  ['a number', 'subsets[*].ports[port=443].name', 'subsets[*].ports[?(@.port === 443)].name'],
  ['RFC 9535', '$.subsets[*].ports[?@.name=="https"].port', '$.subsets[*].ports[?(@.name=="https")].port'],
  ['kubectl', '{.metadata.annotations.owner}', '.metadata.annotations.owner'],
  ['kubectl', 'metadata.annotations.example\\.com/owner', OWNER],
  ['kubectl', '{.metadata.annotations.example\\.com/owner}', `.${OWNER}`],
  ['kubectl', "{.metadata.annotations['example\\.com/owner']}", `.${OWNER}`],
  ['jq', '.subsets[].addresses[].ip', '.subsets[*].addresses[*].ip'],
  ['jq', '.subsets[]?.addresses[]?.ip', '.subsets[*].addresses[*].ip'],
  ['jq', '.subsets[] | .addresses[] | .ip', '.subsets[*].addresses[*].ip'],
  ['jq', '.metadata.annotations["example.com/owner"] | .', `.${OWNER}`],
  ['jq', '.subsets[].ports[] | select(.name == "https") | .port', `.${HTTPS}`],
  ['JSON Pointer', '/metadata/annotations/example.com~1owner', OWNER],
  ['JSON Pointer', '/subsets/0/ports/0/port', 'subsets[0].ports[0].port'],
  ['JSON Pointer', 'metadata/annotations/example.com~1owner', OWNER],
  ['JSON Pointer of a URI', '#/subsets/0/ports/*/port', 'subsets[0].ports[*].port'],
  [
    'jsonpath-plus',
    "metadata.annotations[?(@property === 'example.com/owner')]",
    "metadata.annotations['example.com/owner']",
  ],
])('%s: %s', (_, path, own) => {
  test('the hint is a path without findings', () => {
    const found = checkPatch({ path, expression: 'value' }, endpointsFields);
    expect(found).toHaveLength(1);
    expect(found[0]?.message).toContain(own);
    expect(checkPatch({ path: own, expression: 'value' }, endpointsFields)).toEqual([]);
  });
});

test.each([
  'metadata.labels.app',
  OWNER,
  HTTPS,
  'subsets[0].addresses.1.ip',
  '$.metadata',
  'metadata.annotations.*',
  '',
])('%s is in no other dialect', (path) => {
  expect(inOwnDialect(path)).toBeUndefined();
});

test('a filter on other names of jsonpath-plus says where the key is', () => {
  const [found] = checkPatch({ path: 'metadata.annotations[?(@property.match(/a/))]', expression: 'value' });
  expect(found?.message).toContain('@property is not available; the key is the end of context.path');
});
