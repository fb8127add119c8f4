/** Rules across the sync and the key and token API, which share one file: each with the case that breaks it. */

import { describe, expect, test } from 'vitest';
import { problemsIn, validConfig } from '../cli/config/setup.ts';

const MAPPED = 'sync.toHost.namespaces.mappings.byName';

function file({ host = '{}', http = '{}', api = '{}', byName = '' }): string {
  const mappings =
    byName === '' ? '' : `\nsync: {toHost: {namespaces: {enabled: true, mappings: {byName: {${byName}}}}}}`;
  return `endpointSyncer: {name: vc, host: ${host}, http: ${http}}\nmanagementApi: ${api}${mappings}`;
}

function problemsOf(parts: Parameters<typeof file>[0]): string[] {
  return problemsIn(file(parts)).map((line) => line.replace(/^\S+ /u, ''));
}

const IN_HOST_NAMESPACE =
  "managementApi.store.driver (warning) the Secrets of the key store are in the virtual cluster's host namespace, where references of tenants can name them: set managementApi.store.namespace to a separate namespace";
const SAME_ADDRESS = 'managementApi.bindAddress is also endpointSyncer.http.bindAddress: choose another port';

describe('the Secrets of the key store are where no tenant writes', () => {
  const store = (namespace: string): string =>
    `{enabled: true, store: {driver: kubernetes, namespace: ${namespace}}}`;

  test.each([
    ['a: keys', `${MAPPED}.a host namespace mapping 'keys' conflicts with namespace of the key store 'keys'`],
    [
      '"a-*": "ke*"',
      `${MAPPED}["a-*"] host namespace pattern 'ke*' conflicts with namespace of the key store 'keys'`,
    ],
  ])('no mapping reaches them: %s', (byName, problem) => {
    expect(problemsOf({ byName, api: store('keys') })).toEqual([problem]);
  });

  test('the name of the virtual cluster in a mapping is replaced', () => {
    expect(problemsOf({ byName: 'a: "k-${name}"', api: store('k-vc') })).toEqual([
      `${MAPPED}.a host namespace mapping 'k-\${name}' conflicts with namespace of the key store 'k-vc'`,
    ]);
  });

  test('a mapping has one error', () => {
    expect(problemsOf({ byName: 'a: keys, b: keys', api: store('keys') })).toEqual([
      `${MAPPED}.a host namespace mapping 'keys' conflicts with namespace of the key store 'keys'`,
      `${MAPPED}.b duplicate host namespace 'keys' found in mappings`,
    ]);
  });

  test.each(['a: other', '"a-*": "other-*"'])('a mapping beside them is fine: %s', (byName) => {
    expect(problemsOf({ byName, api: store('keys') })).toEqual([]);
  });

  test.each(['{enabled: true, store: {driver: kubernetes}}', store('ours')])(
    'the host namespace is a warning: %s',
    (api) => {
      expect(problemsOf({ host: '{namespace: ours}', api })).toEqual([IN_HOST_NAMESPACE]);
    },
  );

  test('another namespace is fine', () => {
    expect(problemsOf({ host: '{namespace: ours}', api: store('keys') })).toEqual([]);
  });
});

describe('one process serves both on different addresses', () => {
  test.each([
    ['{}', '{enabled: true, bindAddress: "127.0.0.1:8080"}', [SAME_ADDRESS]],
    ['{bindAddress: "127.0.0.1:9000"}', '{enabled: true, bindAddress: "127.0.0.1:9000"}', [SAME_ADDRESS]],
    ['{bindAddress: "127.0.0.1:9000"}', '{enabled: true, bindAddress: "127.0.0.1:8080"}', []],
    ['{bindAddress: "127.0.0.1:0"}', '{enabled: true, bindAddress: "127.0.0.1:0"}', []],
    ['{bindAddress: "127.0.0.1:9000"}', '{bindAddress: "127.0.0.1:9000"}', []],
  ])('http %s, API %s', (http, api, problems) => {
    expect(problemsOf({ http, api })).toEqual(problems);
  });
});

describe('sections', () => {
  test.each([
    ['managmentApi', 'managementApi'],
    ['endpointSyncr', 'endpointSyncer'],
  ])('%s is a misspelt one', (key, meant) => {
    expect(problemsIn(`endpointSyncer: {name: vc}\n${key}: {}`)).toEqual([
      `2:1 ${key} (warning) this key is not read: did you mean "${meant}"?`,
    ]);
  });

  test('expressions see neither', () => {
    const { vclusterValues } = validConfig(
      'endpointSyncer: {name: vc}\nmanagementApi: {maxTtl: 1h}\nsync: {}',
    );
    expect(Object.keys(vclusterValues)).toContain('sync');
    expect(vclusterValues).not.toHaveProperty('endpointSyncer');
    expect(vclusterValues).not.toHaveProperty('managementApi');
  });
});
