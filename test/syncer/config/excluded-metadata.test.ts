/** Labels and annotations that are not copied: what cannot be excluded, and what a list of one's own leaves out. */

import { expect, test } from 'vitest';
import { EXCLUDED_ANNOTATIONS } from '../../../src/syncer/config/schema-syncer.ts';
import { worldText } from '../../support/world-file.ts';
import { parseText } from '../../cli/config/setup.ts';

function problemsOf(metadata: object): string[] {
  const text = `endpointSyncer: {name: vc, metadata: ${JSON.stringify(metadata)}}`;
  return parseText(text).problems.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
}

test('a label that the translation sets is refused', () => {
  const [problem, ...others] = parseText(worldText('field/f11-config.yaml')).problems;
  expect(others).toEqual([]);
  expect(problem).toMatchObject({ severity: 'error', path: 'endpointSyncer.metadata.excludeLabels[1]' });
  expect(problem?.message).toContain('the translation of copies sets this label, so it cannot be excluded');
  for (const key of [
    'kubernetes.io/service-name',
    'vcluster.loft.sh/managed-by',
    'vcluster.loft.sh/namespace',
  ])
    expect(problemsOf({ excludeLabels: [key] })).toHaveLength(1);
  expect(problemsOf({ excludeLabels: ['multicluster.kubernetes.io/*', 'app'] })).toEqual([]);
});

test.each([[[]], [['example.com/a']]])('a list %j in the place of the default one is named', (list) => {
  const [problem, ...others] = problemsOf({ excludeAnnotations: list });
  expect(others).toEqual([]);
  expect(problem).toContain(`so these are copied: add ${EXCLUDED_ANNOTATIONS.join(', ')}`);
});

test('one that has the default ones is not', () => {
  expect(problemsOf({ excludeAnnotations: EXCLUDED_ANNOTATIONS })).toEqual([]);
  expect(problemsOf({})).toEqual([]);
});
