/** Properties of the naming rules. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyOf } from '../../../src/kube/object.ts';
import {
  clusterScopedName,
  hostName,
  hostNameShort,
  safeConcat,
} from '../../../src/syncer/translate/names.ts';
import { LEGACY, mappings, SINGLE, translators } from './setup.ts';

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/);
const tricky = fc.oneof(label, fc.constantFrom('a-x-b', 'x', 'a-x-x-b', 'x-x', 'suffix', 'v-x-suffix'));
const subdomain = fc.oneof(tricky, fc.stringMatching(/^[a-z0-9]([-.a-z0-9]{0,60}[a-z0-9])?$/));

const SECRET = { group: '', kind: 'Secret' };

describe('long names', () => {
  test('have at most 63 bytes, and are not truncated below that', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 90 }), { minLength: 1, maxLength: 4 }), (parts) => {
        const joined = parts.join('-');
        const name = safeConcat(parts);
        expect(Buffer.byteLength(joined) <= 63 ? name === joined : name.length <= 63).toBe(true);
      }),
    );
  });

  test('a name may be truncated inside a multi-byte character', () => {
    expect(Buffer.byteLength(safeConcat(['ä'.repeat(60), 'x']))).toBeLessThanOrEqual(66);
    expect(safeConcat(['ä'.repeat(60), 'x'])).toMatch(/-[0-9a-f]{10}$/);
  });

  test('are reversible unless they were truncated', () => {
    const { names } = translators();
    fc.assert(
      fc.property(subdomain, tricky, (name, namespace) => {
        const virtual = { name, namespace };
        const host = names.toHost(virtual);
        const isWhole = `${name}-x-${namespace}-x-suffix`.length <= 63;
        const candidates = host === undefined ? [] : names.toVirtualCandidates(host);
        expect(candidates.map(keyOf).includes(keyOf(virtual))).toBe(isWhole);
        for (const candidate of candidates) expect(names.toHost(candidate)).toEqual(host);
      }),
    );
  });

  test('that are ambiguous return all results', () => {
    const { names } = translators();
    expect(names.toVirtualCandidates({ namespace: 'test', name: 'a-x-b-x-c-x-suffix' })).toEqual([
      { name: 'a', namespace: 'b-x-c' },
      { name: 'a-x-b', namespace: 'c' },
    ]);
    expect(names.toVirtualCandidates({ namespace: 'elsewhere', name: 'a-x-b-x-suffix' })).toEqual([]);
    expect(names.toVirtualCandidates({ namespace: 'test', name: 'a-x-b-x-other' })).toEqual([]);
  });
});

describe('short names', () => {
  test('are 14 characters that begin with v', () => {
    fc.assert(
      fc.property(subdomain, tricky, (name, namespace) => {
        expect(hostNameShort(name, namespace, 'suffix')).toMatch(/^v[0-9a-z]{13}$/);
      }),
    );
  });

  test('of the empty name is empty', () => {
    expect([hostNameShort('', 'a', 'b'), hostName('', 'a', 'b'), clusterScopedName('', 'a', 'b')]).toEqual([
      '',
      '',
      '',
    ]);
  });
});

describe('cluster-scoped names', () => {
  test('are reversible unless they were truncated', () => {
    const { names } = translators();
    expect(names.clusterScopedToVirtual('vcluster-stuff-x-test-x-suffix')).toBe('stuff');
    expect(names.clusterScopedToVirtual('vcluster--x-test-x-suffix')).toBeUndefined();
    expect(names.clusterScopedToVirtual('other')).toBeUndefined();
    const cut = names.clusterScopedToHost('a'.repeat(60));
    expect(names.clusterScopedToVirtual(cut)).toBeUndefined();
  });
});

describe('namespaces', () => {
  test('single-namespace mode: all objects are in the host namespace of the virtual cluster', () => {
    const { names } = translators(SINGLE);
    expect(names.namespaceToHost('any')).toBe('test');
    expect([names.keepsName('any'), names.isTargetNamespace('test'), names.isTargetNamespace('any')]).toEqual(
      [false, true, false],
    );
    expect(names.namespaceToVirtual('test')).toBeUndefined();
  });

  test('legacy mode: hashed namespaces, unchanged names, not reversible', () => {
    const { names } = translators(LEGACY);
    const host = names.toHost({ name: 'web', namespace: 'test' });
    expect(host).toEqual({ name: 'web', namespace: 'vcluster-9f86d081-ef5e1ae6' });
    expect(names.toHost({ name: 'web', namespace: 'test' })).toEqual(host);
    expect(names.shortToHost({ name: 'web', namespace: 'test' })).toEqual(host);
    expect(names.toVirtualCandidates({ name: 'web', namespace: 'vcluster-9f86d081-ef5e1ae6' })).toEqual([]);
  });

  test.each([
    ['', 'Pod'],
    ['', 'Service'],
    ['', 'Endpoints'],
    ['discovery.k8s.io', 'EndpointSlice'],
  ])(
    'references to %s/%s, which are copied without a reference, always take the long name',
    (group, kind) => {
      const web = { name: 'web', namespace: 'prod' };
      const { names } = translators();
      expect(names.referenceToHost(web, { group, kind })).toEqual(names.toHost(web));
      expect(names.referenceToHost(web, SECRET)).toEqual(names.shortToHost(web));
      expect(names.referenceToHost(web, { group: 'example.com', kind })).toEqual(names.shortToHost(web));
    },
  );

  test.each([undefined, LEGACY, mappings({ default: 'h-default' }, true)])(
    'the Service of the virtual API server is that of the vCluster',
    (options) => {
      const { names } = translators(options);
      const service = { namespace: names.hostNamespace, name: names.vcluster };
      const kubernetes = { namespace: 'default', name: 'kubernetes' };
      expect(names.referenceToHost(kubernetes, { group: '', kind: 'Service' })).toEqual(service);
      expect(names.referenceToHost(kubernetes, { group: '', kind: 'Endpoints' })).toEqual(service);
      expect(names.referenceToHost(kubernetes, SECRET)).toEqual(names.shortToHost(kubernetes));
    },
  );
});
