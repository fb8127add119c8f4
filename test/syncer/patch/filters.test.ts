/** Paths with filters: what they select, in all modes and both directions, how the members flow, and errors. */

import fc from 'fast-check';
import { JSONPath } from 'jsonpath-plus';
import { describe, expect, test } from 'vitest';
import { PatchError } from '../../../src/base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { Direction, PatchContext } from '../../../src/syncer/patch/types.ts';
import type { ConcretePath, Flow } from '../../../src/syncer/translate/types.ts';
import { endpointsFields } from '../../../src/syncer/kinds/endpoints.ts';
import { checkPatch } from '../../../src/syncer/patch/check-patch.ts';
import { parsePath } from '../../../src/syncer/patch/path-syntax.ts';
import { build, context, type BuildOptions } from './build.ts';

const OBJECT: JsonObject = {
  metadata: { name: 'web', annotations: { a: '{{x}}', b: 'plain' } },
  subsets: [
    {
      addresses: [{ ip: '10.0.0.1', hostname: 'a' }, { ip: '192.0.2.1', hostname: 'b' }, { ip: '10.0.0.2' }],
      ports: [
        { name: 'http', port: 80 },
        { name: 'https', port: 443 },
      ],
    },
    { ports: [{ name: 'https', port: 8443 }] },
  ],
};

async function applied(
  patches: readonly PatchConfig[],
  { direction = 'toHost', object = OBJECT, ...rest }: Partial<PatchContext> & Applied = {},
) {
  const given = structuredClone(object);
  const { pipeline } = build(patches, rest.build);
  const result = await pipeline.apply(direction, given, context(rest));
  expect(given).toEqual(object);
  return result;
}

interface Applied {
  readonly direction?: Direction;
  readonly object?: JsonObject;
  readonly build?: BuildOptions;
}

/** The values at the paths that the patch matched, and what it made of them. */
async function portsAfter(patches: readonly PatchConfig[], options?: Parameters<typeof applied>[1]) {
  const { object } = await applied(patches, options);
  return JSONPath({ path: '$.subsets[*].ports[*].port', json: object, eval: false });
}

describe('selects', () => {
  const expression = 'value + 1000';
  test.each<[string, JsonValue[]]>([
    ['subsets[*].ports[?(@.name === "https")].port', [80, 1443, 9443]],
    ['subsets[?(@.addresses)].ports[*].port', [1080, 1443, 8443]],
    ['subsets[?(@.addresses)].ports[?(@.port > 100)].port', [80, 1443, 8443]],
    ['subsets[*].ports[?(context.path.startsWith("subsets.0"))].port', [1080, 1443, 8443]],
    ['subsets[*].ports[?(@.port === context.virtualObject.first)].port', [1080, 443, 8443]],
    ['subsets[*].ports[?(@["na" + "me"]?.length === 4)].port', [1080, 443, 8443]],
    ['subsets[*].ports[?(@.missing)].port', [80, 443, 8443]],
    ['subsets[*].missing[?(@)].port', [80, 443, 8443]],
    ['subsets[*].ports[?(@)].port', [1080, 1443, 9443]],
  ])('%s', async (path, ports) => {
    const virtualObject = { first: 80 };
    expect(await portsAfter([{ path, expression }], { virtualObject })).toEqual(ports);
    const immediately = { virtualObject, build: { answers: 'immediately' } } as const;
    expect(await portsAfter([{ path, expression }], immediately)).toEqual(ports);
  });

  test('members of a map by their values, never bookkeeping', async () => {
    const path = 'metadata.annotations[?(@.includes("{{") || @.startsWith("web"))]';
    const kept = 'vcluster.loft.sh/object-name';
    const annotations = { a: '{{x}}', b: 'plain', [kept]: 'web' };
    const { object } = await applied([{ path, expression: 'null' }], {
      object: { metadata: { annotations } },
    });
    expect(object).toEqual({ metadata: { annotations: { b: 'plain', [kept]: 'web' } } });
  });

  test('elements, which null removes', async () => {
    const path = 'subsets[*].addresses[?(@.ip.startsWith("10."))]';
    const { object } = await applied([{ path, expression: 'null' }]);
    expect(object['subsets']).toMatchObject([{ addresses: [{ ip: '192.0.2.1' }] }, {}]);
  });

  test('before its own patch, and after those before it', async () => {
    const first = { path: 'subsets[*].ports[*].name', expression: 'value === "http" ? "https" : "http"' };
    const second = { path: 'subsets[*].ports[?(@.name === "https")].name', expression: '"web"' };
    const { object } = await applied([first, second, { ...second, expression: '"never"' }]);
    const names = JSONPath({ path: '$.subsets[*].ports[*].name', json: object, eval: false });
    expect(names).toEqual(['web', 'http', 'http']);
  });

  test('for references, labels, and missing keys too', async () => {
    const at = (name: string): string => `metadata.annotations[?(context.path.endsWith("${name}"))]`;
    const { object, references } = await applied([
      { path: at('a'), reference: { apiVersion: 'v1', kind: 'Secret' } },
      { path: at('b'), labels: {} },
    ]);
    expect(references).toMatchObject([{ path: 'metadata.annotations.a', name: '{{x}}' }]);
    expect(object).toMatchObject({ metadata: { annotations: { b: 'plain' } } });
    const missing = { path: 'subsets[*].addresses[?(@.ip.endsWith(".2"))].hostname', expression: '"new"' };
    const created = await applied([missing], { build: { missingPaths: 'create' } });
    const [subset] = created.object['subsets'] as JsonValue[];
    expect(isJsonObject(subset) && subset['addresses']).toMatchObject([
      { hostname: 'a' },
      { hostname: 'b' },
      { hostname: 'new' },
    ]);
  });

  test('what jsonpath-plus selects', async () => {
    const element = fc.record({ a: fc.nat(3), b: fc.constantFrom('x', 'y') }, { requiredKeys: [] });
    const filter = fc.constantFrom(
      '@.a > 1',
      '@.b === "x"',
      '@.a && @.b',
      '!@.b',
      '@.a === 0 || @.b === "y"',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.array(element, { maxLength: 5 }), fc.dictionary(fc.constantFrom('k', 'l', 'm'), element)),
        filter,
        async (list, text) => {
          const path = `list[?(${text})]`;
          const json = { list } as JsonObject;
          const { object } = await applied([{ path, expression: '"selected"' }], { object: json });
          const selected = JSONPath({
            path: `$.${path}`,
            json,
            resultType: 'pointer',
            eval: 'safe',
          });
          const changed = Object.entries(object['list'] ?? {}).filter(([, value]) => value === 'selected');
          expect(changed.map(([key]) => `/list/${key}`)).toEqual(selected);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('the value of the other side is kept at', () => {
  const hostObject = {
    metadata: { annotations: { b: 'host', c: 'mine' } },
    subsets: [
      {
        addresses: [
          { ip: '10.0.0.1', hostname: 'h' },
          { ip: '192.0.2.1', hostname: 'h' },
        ],
      },
    ],
  };

  test('members that the filter selects on either side', async () => {
    const path = 'metadata.annotations[?(@ === "plain" || @ === "mine")]';
    const { object } = await applied([{ path, reverseExpression: 'value' }], { hostObject });
    expect(object['metadata']).toEqual({ name: 'web', annotations: { a: '{{x}}', b: 'host', c: 'mine' } });
  });

  test('fields of elements that it selects', async () => {
    const path = 'subsets[*].addresses[?(@.ip.startsWith("10."))].hostname';
    const { object } = await applied([{ path, reverseExpression: 'value' }], { hostObject });
    expect(object['subsets']).toMatchObject([
      { addresses: [{ ip: '10.0.0.1', hostname: 'h' }, { hostname: 'b' }, { ip: '10.0.0.2' }] },
      {},
    ]);
  });

  test('whole elements, after those that it does not select', async () => {
    const path = 'subsets[*].addresses[?(@.ip.startsWith("10."))]';
    const { object } = await applied([{ path, reverseExpression: 'value' }], { hostObject });
    const [subset] = object['subsets'] as JsonValue[];
    expect(isJsonObject(subset) && subset['addresses']).toEqual([
      { ip: '192.0.2.1', hostname: 'b' },
      { ip: '10.0.0.1', hostname: 'h' },
    ]);
  });
});

describe('direction of a path', () => {
  const key = (name: string): ConcretePath => ['metadata', 'annotations', name];
  const path = 'metadata.annotations[?(@.includes("{{"))]';
  const hostObject = { metadata: { annotations: { a: 'x', b: 'changed', c: '{{c}}' } } };

  test.each<[string, PatchConfig, readonly Flow[]]>([
    ['an expression', { path, expression: '"x"' }, ['toHost', 'both', 'toHost']],
    ['a reverseExpression', { path, reverseExpression: '"x"' }, ['toVirtual', 'both', 'toVirtual']],
    // The filter does not select what the expression made, so that nothing could undo it.
    ['both', { path, expression: '"x"', reverseExpression: 'value' }, ['toHost', 'both', 'both']],
    ['labels', { path: 'metadata.annotations[?(@ === "plain")]', labels: {} }, ['both', 'both', 'both']],
  ])('%s', async (_, patch, expected) => {
    const { flows } = await applied([patch], { hostObject });
    expect(['a', 'b', 'c'].map((name) => flows?.flowOf(key(name)))).toEqual(expected);
  });

  test('two-way only where the filter selects the element on both sides', async () => {
    const both = { expression: 'value + 1000', reverseExpression: 'value - 1000' };
    const twoWay = async (filter: string, host: JsonObject | null) => {
      const patch = { path: `subsets[*].ports[?(${filter})].port`, ...both };
      const { flows } = await applied([patch], { hostObject: host });
      return flows?.twoWayPaths(OBJECT);
    };
    const copy = {
      subsets: [
        {
          ports: [
            { name: 'http', port: 80 },
            { name: 'https', port: 1443 },
          ],
        },
      ],
    };
    const place: ConcretePath = ['subsets', 0, 'ports', 1, 'port'];
    expect(await twoWay('@.name === "https"', null)).toEqual([place, ['subsets', 1, 'ports', 0, 'port']]);
    expect(await twoWay('@.name === "https"', copy)).toEqual([place]);
    expect(await twoWay('@.port === 443', copy)).toEqual([]);
  });
});

describe('errors', () => {
  test('name the entry, the place and the part of the filter', async () => {
    const path = 'subsets[*].ports[?(@.name.first.last)].port';
    const error: unknown = await applied([{ path, expression: 'value' }]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PatchError);
    expect(error).toMatchObject({ index: 0, path: 'subsets.0.ports.0', kind: 'runtime' });
    expect(String(error)).toMatch(/filter: .*reading 'last'/);
  });

  test('on the object of the other side alone select nothing there', async () => {
    const patch = { path: 'metadata.annotations[?(@.startsWith("p"))]', expression: 'value + "!"' };
    const { object } = await applied([patch], { hostObject: { metadata: { annotations: { a: 7 } } } });
    expect(object['metadata']).toMatchObject({ annotations: { b: 'plain!' } });
  });

  test('in an entry leave the patches after it out', async () => {
    const patches = [
      { path: 'subsets[?(@.a.b)].ports', expression: 'null' },
      { path: 'metadata', expression: '1' },
    ];
    await expect(applied(patches)).rejects.toMatchObject({ index: 0 });
  });
});

describe('what other dialects of paths compare with', () => {
  test.each([
    ['@.name = "https"', 'filter: `=` is an assignment: write @.name === "https"'],
    [String.raw`@.ip =~ /^192\./`, 'filter: `=~` is an assignment in JavaScript: write /^192\\./.test(@.ip)'],
    ['@.port += 1', 'filter: `+=` changes the element'],
    ['@.port++', 'filter: `++` changes the element'],
    ['delete @.port', 'filter: `delete` changes the element'],
    ['@.port, true', 'filter: `,` has the value of its last operand only: write && or ||'],
    ['@.list.some((x) => (x = 1))', 'filter: `=` is an assignment: write x === 1'],
    [
      '@.port - 443',
      'filter: its result is a number, and never true or false: write a comparison, such as @.port === 443',
    ],
    [
      '"https"',
      'filter: its result is a string, and never true or false: write a comparison, such as @.port === 443',
    ],
  ])('[?(%s)] is an error at load', (filter, message) => {
    const problems = checkPatch(
      { path: `subsets[*].ports[?(${filter})].port`, expression: 'value' },
      undefined,
    );
    expect(problems.filter(({ severity }) => severity === undefined).map((one) => one.message)).toEqual([
      message,
    ]);
  });

  test.each([
    ['subsets[*].ports[name=https].port', 'subsets[*].ports[?(@.name === "https")].port'],
    ['subsets[*].ports[port=443].name', 'subsets[*].ports[?(@.port === 443)].name'],
    ['subsets.0.ports.http.port', 'ports[*].http'],
    [String.raw`metadata.annotations.example\.com/owner`, 'metadata.annotations["example.com/owner"]'],
    ["subsets[*].ports[?@.name=='https'].port", "[?(@.name=='https')]"],
  ])('%s gets a suggestion that parses', (path, suggestion) => {
    const [problem] = checkPatch({ path, expression: 'value' }, endpointsFields);
    expect(problem?.message).toContain(suggestion);
    expect(parsePath(suggestion)).toMatchObject({ ok: true });
  });
});
