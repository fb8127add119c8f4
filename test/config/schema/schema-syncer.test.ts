/** An editor that uses `config/schema.json` rejects what `validate` rejects, and accepts what it accepts. */

import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { FLAGS } from '../../../src/config/flags.ts';
import { configJsonSchema } from '../../../src/config/schema/schema.ts';
import { parseText } from '../setup.ts';
import { costlyRuns } from '../../support/costly-runs.ts';

const ajv = new Ajv({ strict: false });
const schemaAccepts = ajv.compile(JSON.parse(configJsonSchema()) as object);

/** JSON Schema cannot compare values, count durations, or parse paths and expressions. */
const INEXPRESSIBLE = [
  /^must be between/u,
  /must not be longer than/u,
  /have the same path/u,
  /cannot be patched/u,
  /^is also endpointSyncer\.http\.bindAddress/u,
  /^duplicate host namespace/u,
  /conflicts with/u,
  /multiple times/u,
  /cannot be longer than 32/u,
];

function errorsOf(file: JsonObject): string[] {
  return parseText(JSON.stringify(file))
    .problems.filter(({ severity }) => severity === 'error')
    .map(({ path, message }) => `${path}: ${message}`);
}

function isExpressible(error: string): boolean {
  const message = error.slice(error.indexOf(': ') + 2);
  return !INEXPRESSIBLE.some((pattern) => pattern.test(message));
}

/** Undefined if the schema and the loader agree about a file. */
function disagreement(file: JsonObject): object | undefined {
  const errors = errorsOf(file);
  const isAccepted = schemaAccepts(file);
  const isEither = errors.length > 0 && !errors.some(isExpressible);
  if (isEither || isAccepted === (errors.length === 0)) return undefined;
  return { file, isAccepted, errors, schema: schemaAccepts.errors };
}

const NAMED = { name: 'my-vcluster', host: { namespace: 'team-a' } };

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

  const optional = (values: readonly JsonValue[]) =>
    fc.option(fc.constantFrom(...values), { nil: undefined });
  const object = (members: Record<string, readonly JsonValue[]>) =>
    fc
      .record(Object.fromEntries(Object.entries(members).map(([key, values]) => [key, optional(values)])))
      .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject); // drops what is undefined

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
