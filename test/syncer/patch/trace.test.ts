/** The trace of patches: the matches and changes of each one, as `explain` and the playground show them. */

import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import { tracePatches, type PatchTrace } from '../../../src/syncer/patch/trace.ts';
import type { Direction } from '../../../src/syncer/patch/types.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { build, context, pipelineOptions } from './build.ts';

const WEB: JsonObject = {
  metadata: { name: 'web', annotations: { owner: 'shop', secret: 'tls', selector: 'release=a' } },
  subsets: [
    {
      addresses: [
        { ip: '10.0.0.1', hostname: 'a' },
        { ip: '10.0.0.2', hostname: 'b' },
      ],
    },
  ],
};

async function trace(
  patches: readonly PatchConfig[],
  direction: Direction = 'toHost',
  object = WEB,
): Promise<PatchTrace> {
  let now = 0;
  return tracePatches(
    { ...pipelineOptions(patches), monotonicMs: () => now++ },
    direction,
    object,
    context(),
  );
}

describe('the trace of patches', () => {
  test('shows the change of each reference where several have one path and one namespace', async () => {
    const entries = ['secret', 'config'].map((namePath) => ({
      path: 'ref',
      reference: { apiVersion: 'v1', kind: 'Secret', namePath, namespacePath: 'in.ns' },
    }));
    const object = { ref: { secret: 'a', config: 'b', in: { ns: 'team' } } };
    const traced = await trace(entries, 'toHost', object);
    const names = { secret: hostNameShort('a', 'team', 'vc'), config: hostNameShort('b', 'team', 'vc') };
    const first = { ...object.ref, secret: names.secret, in: { ns: 'ns' } };
    const second = { ...names, in: { ns: 'ns' } };
    expect(traced.patches.map(({ index, matches }) => ({ index, matches }))).toEqual([
      { index: 0, matches: [{ path: 'ref', before: object.ref, after: first }] },
      { index: 1, matches: [{ path: 'ref', before: first, after: second }] },
    ]);
    expect((await build(entries).pipeline.apply('toHost', object, context())).object).toEqual(traced.object);
  });

  test('names every concrete path with its value before and after', async () => {
    const { patches } = await trace([
      { path: 'subsets[*].addresses[*].hostname', expression: 'value + "-x"' },
      { path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } },
      { path: 'metadata.annotations.selector', labels: {} },
    ]);
    expect(patches.map(({ index, action, matches }) => ({ index, action, matches }))).toEqual([
      {
        index: 0,
        action: 'evaluate',
        matches: [
          { path: 'subsets.0.addresses.0.hostname', before: 'a', after: 'a-x' },
          { path: 'subsets.0.addresses.1.hostname', before: 'b', after: 'b-x' },
        ],
      },
      {
        index: 1,
        action: 'reference',
        matches: [
          {
            path: 'metadata.annotations.secret',
            before: 'tls',
            after: expect.stringMatching(/^v\w{13}$/) as unknown,
          },
        ],
      },
      {
        index: 2,
        action: 'labels',
        matches: [
          {
            path: 'metadata.annotations.selector',
            before: 'release=a',
            after: expect.stringContaining('vcluster.loft.sh/label-vc-x-') as unknown,
          },
        ],
      },
    ]);
  });

  test('a deleted element has no value after the patch, and its neighbours keep theirs', async () => {
    const { patches, object } = await trace([
      { path: 'subsets[0].addresses[*]', expression: 'value.hostname === "a" ? null : value' },
    ]);
    expect(patches[0]?.matches.map(({ after }) => after ?? undefined)).toEqual([
      undefined,
      { ip: '10.0.0.2', hostname: 'b' },
    ]);
    expect(object).toMatchObject({ subsets: [{ addresses: [{ hostname: 'b' }] }] });
  });

  test('a path without a match names the nearest path that exists', async () => {
    const { patches } = await trace([
      { path: 'subsets[*].adresses[*].ip', expression: 'value' },
      { path: 'status', expression: 'value' },
    ]);
    expect(patches.map(({ matches, nearest }) => ({ count: matches.length, nearest }))).toEqual([
      { count: 0, nearest: 'subsets.0' },
      { count: 0, nearest: '' },
    ]);
  });

  test('a patch that fails ends the trace, with its error and the object before it', async () => {
    const { patches, object } = await trace([
      { path: 'metadata.annotations.owner', expression: '"team-" + value' },
      { path: 'metadata.annotations.owner', expression: 'value.nope()' },
      { path: 'metadata.annotations.secret', expression: '"later"' },
    ]);
    expect(patches).toHaveLength(2);
    expect(patches[1]?.error).toMatchObject({
      index: 1,
      kind: 'runtime',
      path: 'metadata.annotations.owner',
    });
    expect(object).toMatchObject({ metadata: { annotations: { owner: 'team-shop', secret: 'tls' } } });
  });

  test('to the virtual cluster, the patches run in reverse order', async () => {
    const patches: PatchConfig[] = [
      { path: 'metadata.annotations.owner', reverseExpression: 'value + "1"' },
      { path: 'metadata.annotations.secret', reverseExpression: 'value + "2"' },
    ];
    const traced = await trace(patches, 'toVirtual');
    expect(traced.patches.map(({ index }) => index)).toEqual([1, 0]);
  });
});
