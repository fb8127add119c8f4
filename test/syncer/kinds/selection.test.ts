/** Which objects `endpointSyncer.selector` and `endpointSyncer.namespaces` select. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../../src/syncer/config/config.ts';
import { selectionOf } from '../../../src/syncer/kinds/relations.ts';
import { problemsIn, validConfig } from '../../cli/config/setup.ts';

type LabelSelectorConfig = Config['selector'];
const NONE: LabelSelectorConfig = { matchLabels: {}, matchExpressions: [] };
type NamespacesConfig = Config['namespaces'];

const ALL: NamespacesConfig = { include: [], exclude: [] };

function reasonFor(
  namespace: string,
  labels: Record<string, string>,
  { selector = NONE, namespaces = ALL }: { selector?: LabelSelectorConfig; namespaces?: NamespacesConfig },
) {
  return selectionOf({ selector, namespaces })({ metadata: { name: 'web', namespace, labels } });
}

describe('labels', () => {
  const expression = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', ...values: string[]) => ({
    matchLabels: {},
    matchExpressions: [{ key: 'tier', operator, values }],
  });

  test.each<[string, LabelSelectorConfig, Record<string, string>, boolean]>([
    ['none', NONE, {}, true],
    ['a value', { ...NONE, matchLabels: { tier: 'web' } }, { tier: 'web', other: 'x' }, true],
    ['another value', { ...NONE, matchLabels: { tier: 'web' } }, { tier: 'db' }, false],
    ['no label', { ...NONE, matchLabels: { tier: 'web' } }, {}, false],
    ['an empty value', { ...NONE, matchLabels: { tier: '' } }, { tier: '' }, true],
    ['several', { ...NONE, matchLabels: { tier: 'web', 'a.b/c': 'x' } }, { tier: 'web' }, false],
    ['In', expression('In', 'web', 'db'), { tier: 'db' }, true],
    ['In, another', expression('In', 'web', 'db'), { tier: 'x' }, false],
    ['NotIn', expression('NotIn', 'web'), {}, true],
    ['NotIn, one of them', expression('NotIn', 'web'), { tier: 'web' }, false],
    ['Exists', expression('Exists'), { tier: '' }, true],
    ['Exists, none', expression('Exists'), {}, false],
    ['DoesNotExist', expression('DoesNotExist'), {}, true],
    ['DoesNotExist, one', expression('DoesNotExist'), { tier: 'x' }, false],
  ])('%s', (_, selector, labels, isSelected) => {
    expect(reasonFor('shop', labels, { selector })).toBe(isSelected ? undefined : 'not selected');
  });
});

describe('namespaces', () => {
  test.each<[NamespacesConfig, string, boolean]>([
    [ALL, 'shop', true],
    [{ include: ['shop'], exclude: [] }, 'shop', true],
    [{ include: ['shop'], exclude: [] }, 'shop-2', false],
    [{ include: ['team-*', 'shop'], exclude: [] }, 'team-a', true],
    [{ include: ['team-*'], exclude: ['team-a'] }, 'team-a', false],
    [{ include: ['team-*'], exclude: ['team-a'] }, 'team-b', true],
    [{ include: [], exclude: ['kube-*'] }, 'kube-system', false],
    [{ include: [], exclude: ['kube-*'] }, 'akube-', true],
    [{ include: ['*'], exclude: ['*.x'] }, 'ax', true],
  ])('%j: %s', (namespaces, namespace, isSelected) => {
    expect(reasonFor(namespace, {}, { namespaces })).toBe(isSelected ? undefined : 'namespace is excluded');
  });

  test('a pattern is a whole name, whatever its characters', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (pattern, name) => {
        const plain = pattern.replaceAll('*', '');
        const isSame = reasonFor(name, {}, { namespaces: { include: [plain], exclude: [] } }) === undefined;
        expect(isSame).toBe(name === plain);
      }),
    );
  });
});

describe('the configuration', () => {
  test('of both', () => {
    const config = validConfig(
      'endpointSyncer: {name: vc, selector: {matchLabels: {a: b}}, namespaces: {exclude: [x]}}',
    );
    expect(reasonFor('shop', { a: 'b' }, config)).toBeUndefined();
    expect(reasonFor('shop', {}, config)).toBe('not selected');
    expect(reasonFor('x', { a: 'b' }, config)).toBe('namespace is excluded');
  });

  test.each([
    ['{matchLabels: {"a b": x}}', /^1:53 endpointSyncer\.selector\.matchLabels\["a b"\] /],
    ['{matchLabels: {a: "x y"}}', /endpointSyncer\.selector\.matchLabels\.a /],
    [
      '{matchExpressions: [{key: a, operator: In}]}',
      /matchExpressions\[0\] the operator In needs at least one value/,
    ],
    [
      '{matchExpressions: [{key: a, operator: Exists, values: [b]}]}',
      /values the operator Exists has no values/,
    ],
    ['{matchExpressions: [{key: a, operator: in, values: [b]}]}', /matchExpressions\[0\]\.operator /],
    ['{matchExpressions: [{key: "", operator: Exists}]}', /matchExpressions\[0\]\.key /],
    ['{matchLabel: {a: b}}', /unknown key "matchLabel", did you mean "matchLabels"/],
  ])('%s is an error', (selector, problem) => {
    expect(problemsIn(`endpointSyncer: {name: vc, selector: ${selector}}`)).toEqual([
      expect.stringMatching(problem),
    ]);
  });
});
