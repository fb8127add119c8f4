/** The cases of `patches.yaml`, through the whole pipeline; `valid-*` are cases of the configuration. */

import { describe, expect, test } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { PatchConfig, ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { parsePath } from '../../../src/syncer/patch/path-syntax.ts';
import type { Direction } from '../../../src/syncer/patch/types.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { isOverruled, loadCases, type WorkedCase } from '../../support/cases.ts';
import { build, context, type BuildOptions } from './build.ts';

const cases = loadCases('patches').filter(({ id }) => !id.startsWith('valid-'));

function casesOf(prefix: string): WorkedCase[] {
  return cases.filter((one) => one.id.startsWith(prefix) && !isOverruled(one));
}

async function patched(
  patches: unknown,
  object: JsonValue | undefined,
  direction: Direction = 'toHost',
  options: BuildOptions & { objectNamespace?: string } = {},
): Promise<JsonObject> {
  if (!isJsonObject(object)) throw new Error('the object of a case is an object');
  const { pipeline } = build(patches as PatchConfig[], options);
  const result = await pipeline.apply(
    direction,
    object,
    context({ objectNamespace: options.objectNamespace ?? 'default' }),
  );
  return result.object;
}

/** A text member of a case. */
function text(value: JsonValue | undefined, otherwise = ''): string {
  return typeof value === 'string' ? value : otherwise;
}

test('exactly these cases are marked as overruled', () => {
  const run = ['path-', 'parse-', 'expr-', 'dir-', 'ref-'].flatMap((prefix) => casesOf(prefix)).length;
  expect(run + cases.filter(isOverruled).length).toBe(cases.length);
});

describe('path', () => {
  test.each(casesOf('path-'))('$id $source', async ({ input, expected }) => {
    expect(await patched(input['patches'], input['patch'])).toEqual(expected);
  });

  test.each<[string, JsonValue]>([
    ['path-13', { metadata: { annotations: { 'existing-key': 'value' } } }],
    ['path-18', { spec: { rules: { a: '9', b: '9' } } }],
    ['path-20', { spec: { b: '2' } }],
    ['path-21', { metadata: { annotations: {} } }],
  ])('%s instead', async (id, expected) => {
    const overruled = cases.find((one) => one.id === id);
    expect(await patched(overruled?.input['patches'], overruled?.input['patch'])).toEqual(expected);
  });
});

describe('parse', () => {
  /** vCluster's form: a segment in brackets keeps them, without double quotes. */
  function vclusterForm(path: string): JsonValue {
    const parsed = parsePath(path);
    if (!parsed.ok) return 'error';
    return parsed.segments.map((segment) => {
      if (segment.kind === 'wildcard') return '[*]';
      if (segment.kind === 'filter') return `[?(${segment.expression})]`;
      if (segment.kind === 'index') return `[${segment.index}]`;
      return path.includes(`["${segment.key}"]`) ? `[${segment.key}]` : segment.key;
    });
  }

  test.each(casesOf('parse-'))('$id $input.path', ({ input, expected }) => {
    const isError = typeof expected === 'string' && expected.startsWith('error:');
    expect(vclusterForm(text(input['path']))).toEqual(isError ? 'error' : expected);
  });
});

describe('expr', () => {
  test.each(casesOf('expr-'))('$id $input.expression', async ({ input, expected }) => {
    const vcluster = (input['context'] as { vcluster?: { name: string; namespace: string } } | undefined)
      ?.vcluster;
    const options =
      vcluster === undefined ? {} : { vcluster: vcluster.name, hostNamespace: vcluster.namespace };
    const isWhole = input['path'] === '';
    const object = isWhole ? input['value'] : { value: input['value'] ?? null };
    const patches = [{ path: isWhole ? '' : 'value', expression: text(input['expression']) }];
    const result = await patched(patches, object, 'toHost', options);
    expect(isWhole ? result : (result['value'] ?? null)).toEqual(expected);
  });
});

describe('dir', () => {
  test.each(casesOf('dir-'))('$id', async ({ input, expected }) => {
    const direction = input['direction'] === 'virtual->host' ? 'toHost' : 'toVirtual';
    expect(await patched(input['patches'], input['change'], direction)).toEqual(expected);
  });
});

describe('ref', () => {
  // The cases have the long names of their time; which naming is in force is a setting.
  test.each(casesOf('ref-').filter(({ id }) => id !== 'ref-06'))(
    '$id $source',
    async ({ input, expected }) => {
      const reference = {
        apiVersion: 'v1',
        kind: 'Secret',
        ...(input['reference'] as Partial<ReferenceConfig>),
      };
      const result = await patched([{ path: input['path'], reference }], input['patch'], 'toHost', {
        naming: 'long',
        vcluster: text(input['vclusterName']),
        hostNamespace: text(input['hostNamespace']),
        objectNamespace: text(input['objectNamespace'], 'default'),
      });
      // Where documentation and code differ, the code is right; the documented part shows the place.
      const byCode = isJsonObject(expected) ? expected['byCode'] : undefined;
      expect(result).toEqual(byCode === undefined ? expected : { spec: { secretRef: byCode } });
    },
  );

  test('ref-06', async () => {
    const { input, expected } = cases.find(({ id }) => id === 'ref-06') ?? {};
    const { name, namespace, vclusterName } = input as Record<string, string>;
    const wanted = (expected as { name: string }).name;
    expect(hostNameShort(name ?? '', namespace ?? '', vclusterName ?? '')).toBe(wanted);
    const reference = { apiVersion: 'v1', kind: 'Secret' };
    const object = { ref: name ?? '' };
    const options = { vcluster: vclusterName ?? '', objectNamespace: namespace ?? '' };
    expect(await patched([{ path: 'ref', reference }], object, 'toHost', options)).toEqual({ ref: wanted });
  });

  test('ref-05 instead', async () => {
    const { input } = cases.find(({ id }) => id === 'ref-05') ?? {};
    const reference = { apiVersion: 'v1', kind: 'Secret' };
    await expect(patched([{ path: input?.['path'], reference }], input?.['patch'])).rejects.toMatchObject({
      name: 'PatchError',
      index: 0,
      path: 'test.endpoints.0',
      message: expect.stringContaining('this is an object; set namePath') as unknown,
    });
  });
});
