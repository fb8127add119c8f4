/** Which virtual namespace is mapped to which host namespace, and back, and which mappings are refused. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkNamespaceMappings } from '../../../src/syncer/translate/namespace-mappings.ts';
import { mappings, translators } from './setup.ts';

const SECRET = { group: '', kind: 'Secret' };
const byName = { prod: 'h-prod', 'a-*': 'h-a-*', 'a-b-*': 'special-*', 'data-*': '${name}-data-*' };

describe('mappings', () => {
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
    checkNamespaceMappings(byName, vcluster, hostNamespace)
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
