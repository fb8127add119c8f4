/** An editor that uses `config/schema.json` rejects what `validate` rejects, and accepts what it accepts. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { FLAGS } from '../../../src/cli/config/flags.ts';
import { costlyRuns } from '../../support/costly-runs.ts';
import { disagreement, NAMED, object } from '../../cli/config/agreement.ts';

/** Texts, numbers and other values that a field may accept. */
const VALUES = [
  '|x|A b|-1|10|0|1s|5ms|1.5h|30d|128Mi|1Q|:80|[::1]:0'.split('|'),
  'https://a.example|https://a?b|http://a|ftp://a|127.0.0.1:99999|sync|info'.split('|'),
  [true, false, 0, 1, -1, 1.5, 10, 257, 2 ** 27, [], {}, ['a'], { a: 1 }],
].flat(1) satisfies readonly JsonValue[];

describe('the schema and the loader agree', () => {
  test.each(FLAGS)('on values of $section.$field', ({ section, field }) => {
    const base: JsonObject = section === 'endpointSyncer' ? { ...NAMED } : {};
    const fileWith = (value: JsonValue): JsonObject => {
      const own = field.split('.').reduceRight<JsonValue>((inner, step) => ({ [step]: inner }), value);
      return { endpointSyncer: { ...NAMED }, [section]: { ...base, ...(own as JsonObject) } };
    };
    expect(VALUES.map((value) => disagreement(fileWith(value))).filter(Boolean)).toEqual([]);
  });

  test('on an owner', () => {
    const owner = object({
      kind: ['Deployment', 'Service', 'Gadget', ''],
      name: ['a', ''],
      apiVersion: ['apps/v1', ''],
    });
    fc.assert(
      fc.property(owner, (value) => {
        expect(disagreement({ endpointSyncer: { ...NAMED, owner: value } })).toBeUndefined();
      }),
      { numRuns: costlyRuns(300) },
    );
  });

  test('on access to a cluster and certificates', () => {
    const virtual = object({ kubeconfig: ['a', ''], secret: ['b', ''], server: ['https://a', '', 'x'] });
    const tls = object({ certFile: ['a', ''], keyFile: ['b', ''] });
    fc.assert(
      fc.property(virtual, tls, (value, files) => {
        expect(
          disagreement({ endpointSyncer: { ...NAMED, virtual: value }, managementApi: { tls: files } }),
        ).toBeUndefined();
      }),
      { numRuns: costlyRuns(500) },
    );
  });

  test.each<JsonObject>([
    {},
    { endpointSyncer: {} },
    { endpointSyncer: { name: 'A' } },
    { endpointSyncer: { name: 'a', nam: 'b' } },
    { sync: {}, managementApi: {} },
    { sync: { toHost: { endpoints: { patches: [] } } }, endpointSyncer: { name: 'a' } },
    { sync: [], endpointSyncer: { name: 'a' } },
    { sync: { toHost: { secrets: { enabled: 'yes' } } }, endpointSyncer: { name: 'a' } },
    { sync: { toHost: { customResources: { 'a.b': { enabled: 1 } } } }, endpointSyncer: { name: 'a' } },
    { endpointSyncer: { name: 'a', references: { refuseSecrets: [''] } } },
    { endpointSyncer: { name: 'a', references: { onlyLabelled: 'a=b' } } },
  ])('on %j', (file) => {
    expect(disagreement(file)).toBeUndefined();
  });
});
