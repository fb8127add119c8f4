/** The schema of vCluster's sections and the loader agree. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { disagreement, NAMED, object } from '../../cli/config/agreement.ts';

describe('the schema and the loader agree', () => {
  const reference = object({
    apiVersion: ['v1', 'apps/v1', '', 1],
    kind: ['Secret', '', 'a b'],
    kindPath: ['kind', ''],
    apiVersionPath: ['apiVersion', ''],
    namePath: ['name', ''],
    namespacePath: ['namespace'],
    other: [1],
  });
  const patch = fc
    .tuple(
      object({
        path: ['metadata.annotations.a', 1],
        expression: ['value', '', 1],
        reverseExpression: ['value', ''],
        labels: [{}, { a: 1 }, ''],
        other: [1],
      }),
      fc.option(reference, { nil: undefined, freq: 3 }),
    )
    .map(([entry, named]): JsonObject => (named === undefined ? entry : { ...entry, reference: named }));

  test.each(['endpoints', 'endpointSlices'])('on patches of %s', (kind) => {
    fc.assert(
      fc.property(patch, (entry) => {
        expect(
          disagreement({ sync: { toHost: { [kind]: { patches: [entry] } } }, endpointSyncer: { ...NAMED } }),
        ).toBeUndefined();
      }),
      { numRuns: costlyRuns(1000) },
    );
  });

  test('on namespaces', () => {
    const side = fc.constantFrom(
      'a',
      'a-*',
      '*',
      'A',
      '',
      '-a',
      '${name}-x',
      'x-${name}',
      '${other}',
      '${name}-*',
      'a*b',
      '**',
    );
    const sync = fc.record({
      enabled: fc.boolean(),
      byName: fc.dictionary(side, side, { maxKeys: 2 }),
      isLegacy: fc.boolean(),
    });
    fc.assert(
      fc.property(sync, ({ enabled, byName, isLegacy }) => {
        expect(
          disagreement({
            sync: { toHost: { namespaces: { enabled, mappings: { byName: { ...byName } } } } },
            experimental: { multiNamespaceMode: { enabled: isLegacy } },
            endpointSyncer: { ...NAMED },
          }),
        ).toBeUndefined();
      }),
      { numRuns: costlyRuns(2000) },
    );
  });
});
