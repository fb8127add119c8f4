/** Keys, API versions and resourceVersions. */

import { describe, expect, test } from 'vitest';
import { apiVersionOf, compareVersions, groupOf, keyOf, objectKey, parseKey } from '../../src/kube/object.ts';

describe('resourceVersions', () => {
  test.each([
    ['9', '10', -1],
    ['10', '9', 1],
    ['99999999999999999999998', '99999999999999999999999', -1],
    ['7', '7', 0],
  ])('%s against %s', (a, b, sign) => {
    expect(Math.sign(compareVersions(a, b) ?? NaN)).toBe(sign);
  });

  test.each([
    ['abc', '10'],
    ['07', '8'],
    ['', '8'],
    [undefined, '8'],
    [undefined, undefined],
  ])('%s against %s cannot be compared', (a, b) => {
    expect(compareVersions(a, b)).toBeUndefined();
  });
});

test.each([
  ['shop', 'web', 'shop/web'],
  ['', 'web', 'web'],
])('a key of namespace %j and name %j is %s', (namespace, name, key) => {
  expect(keyOf({ namespace, name })).toBe(key);
  expect(parseKey(key)).toEqual({ namespace, name });
  expect(objectKey({ metadata: { namespace, name } })).toBe(key);
});

test.each([
  ['', 'v1'],
  ['discovery.k8s.io', 'discovery.k8s.io/v1'],
])('the apiVersion of the group %j is %s', (group, apiVersion) => {
  expect(apiVersionOf({ group, version: 'v1' })).toBe(apiVersion);
  expect(groupOf(apiVersion)).toBe(group);
});
