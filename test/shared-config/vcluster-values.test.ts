/** Default values and their merge with a configuration. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { problemsIn } from '../cli/config/setup.ts';
import { mergeConfig, withoutEmptyKeys } from '../../src/config-file/merge.ts';
import { vclusterDefaults } from '../../src/shared-config/vcluster-values.ts';
import { Fields } from '../../src/config-file/finding.ts';
import { cloneJson, setOwn, type JsonObject } from '../../src/base/json.ts';

const jsonObject = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), fc.jsonValue({ maxDepth: 3 }))
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject); // a JSON object by construction

describe('merging', () => {
  test.each([
    [{ a: { b: 1, c: 2 } }, { a: { c: 3 } }, { a: { b: 1, c: 3 } }],
    [{ a: [1, 2] }, { a: [3] }, { a: [3] }],
    [{ a: { b: 1 } }, { a: 'auto' }, { a: 'auto' }],
    [{ a: 'auto' }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{ a: true }, { a: false }, { a: false }],
  ])('%j and %j', (base, over, merged) => {
    expect(mergeConfig(base, over)).toEqual(merged);
  });

  test('a merge with itself or with nothing is the identity, and does not change its inputs', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (a, b) => {
        const before = JSON.stringify([a, b]);
        expect(mergeConfig(a, {})).toEqual(a);
        expect(mergeConfig({}, a)).toEqual(a);
        expect(mergeConfig(a, a)).toEqual(a);
        expect(mergeConfig(mergeConfig(a, b), b)).toEqual(mergeConfig(a, b));
        expect(JSON.stringify([a, b])).toBe(before);
      }),
    );
  });
});

describe("vCluster's defaults", () => {
  test('are parsed once, and cannot be changed', () => {
    const first = vclusterDefaults();
    const copy = cloneJson(first);
    expect(() => delete first['sync']).toThrow(TypeError);
    expect(() => setOwn(new Fields(first).object('sync.toHost'), 'pods', null)).toThrow(TypeError);
    expect(vclusterDefaults()).toBe(first);
    expect(first).toEqual(copy);
  });

  test('are those of vCluster, EndpointSlices included', () => {
    expect(vclusterDefaults()).toMatchObject({
      sync: {
        toHost: {
          endpointSlices: { enabled: true },
          endpoints: { enabled: true },
          services: { enabled: true },
          secrets: { enabled: true },
          ingresses: { enabled: false },
          pods: { enabled: true, rewriteHosts: { enabled: true } },
        },
      },
      controlPlane: { coredns: { enabled: true } },
      telemetry: { enabled: true },
    });
  });
});

test('empty keys are removed at every depth, list entries are kept', () => {
  const value = { a: null, b: { c: null, d: [null, { e: null, f: 0 }] }, g: '' };
  expect(withoutEmptyKeys(value)).toEqual({ b: { d: [null, { f: 0 }] }, g: '' });
});

describe('a file that is no configuration is not one that sets nothing', () => {
  const config = 'endpointSyncer: {name: vc}';
  test.each([
    [
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  config.yaml: |\n    ${config}\n`,
      '2:1 kind this is a Kubernetes object of kind ConfigMap, not a configuration: pass what is at data["config.yaml"]',
    ],
    [
      'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {config.yaml: e30=}\n',
      '2:1 kind this is a Kubernetes object of kind Secret, not a configuration: pass a file with the section endpointSyncer',
    ],
    [
      'apiVersion: v1\nkind: Config\nclusters: []\n',
      '2:1 kind this is a kubeconfig, not a configuration: pass it with --host-kubeconfig or --virtual-kubeconfig',
    ],
    [
      `replicas: 2\nconfig:\n  ${config}\n`,
      '2:1 config these are values of the chart of this program: pass what is below config alone, or check it with "endpoint-syncer validate"',
    ],
    [
      'vcluster: {sync: {toHost: {}}}\n',
      '1:1 vcluster these are values of a chart that contains vCluster: pass what is below vcluster alone',
    ],
    [
      'sync: {endpoints: {enabled: true}}\n',
      '1:8 sync.endpoints these are values of vCluster 0.19 or older, because of sync.endpoints: convert them with "vcluster convert config --distro k8s -f FILE", and pass the result',
    ],
  ])('%j', (text, problem) => {
    expect(problemsIn(text, { flags: { name: 'vc' } })).toEqual([problem]);
  });
});
