/** Properties of the naming rules and of namespace mappings. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyOf } from '../../../src/kube/object.ts';
import {
  clusterScopedName,
  hostName,
  hostNameShort,
  safeConcat,
} from '../../../src/syncer/translate/names.ts';
import { checkNamespaceMappings } from '../../../src/syncer/translate/namespace-mappings.ts';
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

  const byName = { prod: 'h-prod', 'a-*': 'h-a-*', 'a-b-*': 'special-*', 'data-*': '${name}-data-*' };

  test('mappings: exact before patterns, longer patterns before shorter ones', () => {
    const { names } = translators(mappings(byName));
    const hosts = ['prod', 'a-1', 'a-b-1', 'data-x', 'other', 'a-'].map((one) => names.namespaceToHost(one));
    expect(hosts).toEqual(['h-prod', 'h-a-1', 'special-1', 'suffix-data-x', 'test', 'h-a-']);
    expect(names.toHost({ name: 'web', namespace: 'other' })).toEqual({
      name: 'web-x-other-x-suffix',
      namespace: 'test',
    });
    expect(names.referenceToHost({ name: 'web', namespace: 'a-1' }, SECRET)).toEqual({
      name: 'web',
      namespace: 'h-a-1',
    });
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

  test('mappings: host names are reversed to the names that translate to them', () => {
    const { names } = translators(mappings(byName));
    expect(names.toVirtualCandidates({ name: 'web', namespace: 'special-1' })).toEqual([
      { name: 'web', namespace: 'a-b-1' },
    ]);
    expect(names.toVirtualCandidates({ name: 'web', namespace: 'h-a-b-1' })).toEqual([]);
    expect(names.toVirtualCandidates({ name: 'web-x-other-x-suffix', namespace: 'test' })).toEqual([
      { name: 'web', namespace: 'other' },
    ]);
    expect(names.toVirtualCandidates({ name: 'web-x-prod-x-suffix', namespace: 'test' })).toEqual([]);
    expect(names.isTargetNamespace('h-a-b-1')).toBe(false);
  });

  test('two namespaces that are mapped to the same host namespace are both returned', () => {
    const { names } = translators(mappings({ one: 'h-x', 'two-*': 'h-*' }));
    expect(names.toVirtualCandidates({ name: 'web', namespace: 'h-x' })).toEqual([
      { name: 'web', namespace: 'one' },
      { name: 'web', namespace: 'two-x' },
    ]);
    expect(names.namespaceToVirtual('h-x')).toBe('one');
  });

  test('mappingsOnly refuses unmapped namespaces', () => {
    const { names } = translators(mappings(byName, true));
    expect(names.namespaceToHost('other')).toBeUndefined();
    expect(names.toHost({ name: 'web', namespace: 'other' })).toBeUndefined();
    expect(names.referenceToHost({ name: 'web', namespace: 'other' }, SECRET)).toBeUndefined();
    expect(names.isTargetNamespace('test')).toBe(false);
    expect(names.toVirtualCandidates({ name: 'web-x-other-x-suffix', namespace: 'test' })).toEqual([]);
  });

  test('mappings that pass validation are reversible', () => {
    const part = fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/);
    fc.assert(
      fc.property(fc.dictionary(part, part, { maxKeys: 4 }), part, (prefixes, namespace) => {
        const byPattern = Object.fromEntries(Object.entries(prefixes).map(([v, h]) => [`${v}-*`, `${h}-*`]));
        fc.pre(checkNamespaceMappings(byPattern, 'suffix', 'test').length === 0);
        const { names } = translators(mappings(byPattern));
        for (const prefix of Object.keys(prefixes)) {
          const virtual = { name: 'web', namespace: `${prefix}-${namespace}` };
          const host = names.toHost(virtual) ?? { name: '', namespace: '' };
          expect(names.toVirtualCandidates(host)).toContainEqual(virtual);
        }
      }),
    );
  });
});

describe('checks of mappings', () => {
  const messageOf = (byName: Record<string, string>, vcluster = 'vc', hostNamespace = 'control'): string =>
    checkNamespaceMappings(byName, vcluster, hostNamespace, 'keys-store')
      .map(({ key, message }) => `${key}: ${message}`)
      .join('\n');

  test.each([
    [{ '': 'h' }, ': virtual namespace cannot be empty'],
    [{ v: 'H_1' }, "v: invalid host namespace name 'H_1': lower-case"],
    [{ a: 'h', b: 'h' }, "b: duplicate host namespace 'h' found in mappings"],
    [{ a: 'h-vc', b: 'h-${name}' }, "b: duplicate host namespace 'h-${name}' found in mappings"],
    [{ 'a-${x}': 'h' }, "a-${x}: virtual namespace 'a-${x}' contains an unsupported placeholder"],
    [{ 'a-${name}-${name}*': 'h-*' }, "(from pattern 'a-${name}-${name}*')"],
    [{ 'a-*': '-h*' }, "a-*: invalid host namespace pattern '-h*'"],
    [{ 'a-*': 'contr*' }, "host namespace pattern 'contr*' conflicts with control plane namespace 'control'"],
    [{ a: 'keys-store' }, "mapping 'keys-store' conflicts with namespace of the key store 'keys-store'"],
    [{ 'a-*': 'keys-*' }, "pattern 'keys-*' conflicts with namespace of the key store 'keys-store'"],
    [{ a: 'x'.repeat(64) }, 'at most 63'],
  ])('%j', (byName, message) => {
    expect(messageOf(byName as Record<string, string>)).toContain(message);
  });

  test('every mapping is validated, and an unknown host namespace causes no conflict', () => {
    expect(messageOf({ a: 'B', c: 'D' }).split('\n')).toHaveLength(2);
    expect(messageOf({ a: 'control' }, 'vc', '')).toBe('');
    expect(messageOf({ '*': 'all-*' })).toBe('');
  });
});
