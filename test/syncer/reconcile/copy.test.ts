/** How often patches run for one decision: once on each state of the virtual object, however long a referenced kind takes to open. Patches
 * of the virtual object. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Postponed } from '../../../src/base/errors.ts';
import { mergePatch, valueAt, type JsonObject } from '../../../src/base/json.ts';
import type { PatchConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { endpointsKind } from '../../../src/syncer/kinds/endpoints.ts';
import { createPatchPipeline } from '../../../src/syncer/patch/pipeline.ts';
import type { PatchPipeline } from '../../../src/syncer/patch/types.ts';
import { virtualPatch } from '../../../src/syncer/reconcile/copy.ts';
import { namingRules } from '../../../src/syncer/translate/naming-rules.ts';
import { Budget } from '../../../src/expressions/local/budget.ts';
import { LocalFirst } from '../../../src/expressions/local/local-first.ts';
import type { EvaluateRequest } from '../../../src/expressions/types.ts';
import { kindIdOf } from '../../../src/syncer/translate/last-synced.ts';
import { build, pipelineOptions, type BuildOptions } from '../patch/build.ts';
import { ownForge } from './own-forge.ts';

const target = { namespace: 'ns', name: 'web-x-default-x-vc' };
const ZONE = 'metadata.annotations.zone';

/** A forge that counts the runs of its patches, and the virtual value that each run saw. */
function counted(patches: readonly PatchConfig[], options: BuildOptions = {}) {
  const { pipeline, evaluator } = build(patches, options);
  const runs: string[] = [];
  const counting: PatchPipeline = {
    ...pipeline,
    apply(direction, object, context) {
      runs.push(`${direction} ${zoneOf(context.virtualObject)}`);
      return pipeline.apply(direction, object, context);
    },
  };
  return { forge: ownForge(counting), runs, evaluator };
}

function zoneOf(object: JsonObject | null): string {
  return JSON.stringify(valueAt(object ?? {}, ['metadata', 'annotations', 'zone']));
}

function virtualEndpoints(annotations: Record<string, string>): KubeObject {
  const metadata = { name: 'web', namespace: 'default', uid: 'u1', resourceVersion: '7', annotations };
  return { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [] };
}

const TWO_WAY: PatchConfig = {
  path: ZONE,
  expression: '"host-" + value',
  reverseExpression: 'value.slice(5)',
};

test('patches run once to create a copy, and once to detect that it is up to date', async () => {
  const { forge, runs } = counted([TWO_WAY]);
  const virtual = virtualEndpoints({ zone: 'a' });
  const { host } = await forge.fresh({ virtual, target, host: undefined, budget: new Budget() });
  expect(runs).toEqual(['toHost "a"']);
  const merged = await forge.merged({ virtual, target, host, budget: new Budget() });
  expect(runs).toEqual(['toHost "a"', 'toHost "a"']);
  expect(merged).toMatchObject({ host: undefined, virtual: undefined });
});

test('for a value that is synced back: once for the current virtual object, once for the changed one', async () => {
  const { forge, runs } = counted([TWO_WAY]);
  const virtual = virtualEndpoints({ zone: 'a' });
  const { host } = await forge.fresh({ virtual, target, host: undefined, budget: new Budget() });
  runs.length = 0;
  const edited = { ...host.metadata.annotations, zone: 'host-b' };
  const merged = await forge.merged({
    virtual,
    target,
    host: { ...host, metadata: { ...host.metadata, annotations: edited } },
    budget: new Budget(),
  });
  expect(merged.virtual?.metadata.annotations?.['zone']).toBe('b');
  expect(runs).toEqual(['toHost "a"', 'toVirtual "a"', 'toHost "b"']);
});

test('all evaluations of a reconcile share a budget, in both directions', async () => {
  const patch: PatchConfig = {
    path: 'metadata.annotations.*',
    expression: 'value.repeat(10000).slice(0, 0) + "host-" + value',
    reverseExpression: 'value.slice(5).repeat(10000).slice(0, 0) + value.slice(5)',
  };
  const options = pipelineOptions([patch], { answers: 'immediately' });
  const { compiled, vcluster, evaluator } = options;
  const sandbox = {
    pids: [],
    define() {},
    forget() {},
    evaluate: (request: EvaluateRequest) => evaluator.evaluate(request),
    async [Symbol.asyncDispose]() {},
  };
  const local = new LocalFirst(sandbox, {
    programs: compiled.programs,
    vcluster,
    names: namingRules(vcluster, { kind: 'single' }),
  });
  const pipeline = createPatchPipeline({ ...options, evaluator: local });
  const forge = ownForge(pipeline);
  const annotations = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`k${at}`, 'a']));
  const virtual = virtualEndpoints(annotations);
  const { host } = await forge.fresh({ virtual, target, host: undefined, budget: new Budget() });
  expect(evaluator.requests).toEqual([]);
  const edited = { ...host, metadata: { ...host.metadata, annotations: { ...host.metadata.annotations } } };
  edited.metadata.annotations['k1'] = 'host-b';
  const merged = await forge.merged({ virtual, target, host: edited, budget: new Budget() });
  expect(merged.virtual?.metadata.annotations).toEqual({ ...annotations, k1: 'b' });
  expect(evaluator.requests.length).toBeGreaterThan(0);
});

test('the watch of a kind that only data names starts during the run of the patches, which is postponed until it has', async () => {
  const opening = Promise.withResolvers<void>();
  let isOpen = false;
  const { forge, runs, evaluator } = counted(
    [
      { path: ZONE, expression: '"host-" + value' },
      {
        path: 'subsets[*].addresses[*].targetRef',
        reference: { apiVersion: 'v1', kind: 'Secret', kindPath: 'kind', namePath: 'name' },
      },
    ],
    {
      references: {
        lookup: () => (isOpen ? { namespace: 'ns', name: 'known' } : undefined),
        prepare(kinds) {
          if (!isOpen) throw new Postponed(kinds.map(kindIdOf).join(), opening.promise);
        },
      },
    },
  );
  const virtual = {
    ...virtualEndpoints({ zone: 'a' }),
    subsets: [{ addresses: [{ ip: '10.0.0.1', targetRef: { kind: 'ConfigMap', name: 'settings' } }] }],
  };
  const pair = { virtual, target, host: undefined, budget: new Budget() };
  await expect(forge.fresh(pair)).rejects.toEqual(new Postponed('v1 ConfigMap', opening.promise));
  isOpen = true;
  const { host, references } = await forge.fresh(pair);
  expect({ runs, evaluations: evaluator.requests.length }).toEqual({
    runs: ['toHost "a"', 'toHost "a"'],
    evaluations: 2,
  });
  expect(valueAt(host as unknown as JsonObject, ['subsets', 0, 'addresses', 0, 'targetRef', 'name'])).toBe(
    'known',
  );
  expect(references).toMatchObject([{ kind: 'ConfigMap', written: { name: 'known' } }]);
});

test('property: a patch of the virtual object, applied, changes its annotations to the wanted ones', () => {
  const map = fc.dictionary(fc.string({ minLength: 1, maxLength: 3 }), fc.string({ maxLength: 2 }));
  const withAnnotations = (annotations: Record<string, string>) => ({ metadata: { name: 'a', annotations } });
  fc.assert(
    fc.property(map, map, (from, to) => {
      const patch = virtualPatch(endpointsKind, withAnnotations(from), withAnnotations(to));
      const applied = mergePatch({ metadata: { annotations: from } }, patch);
      expect(valueAt(applied, ['metadata', 'annotations'])).toEqual(to);
      const none = virtualPatch(endpointsKind, withAnnotations(to), withAnnotations(to));
      expect(none).toEqual({ metadata: { uid: null, resourceVersion: null } });
    }),
  );
});
