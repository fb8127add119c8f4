/** `--kind` where objects of several groups have one kind and one name: `KIND.GROUP` chooses, and the kind alone is an error that says so. */

import { expect, test } from 'vitest';
import { findTarget } from '../../../src/syncer/rehearsal/find-target.ts';
import type { Target } from '../../../src/syncer/rehearsal/status-rows.ts';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { knownKind } from '../../../src/syncer/rehearsal/kind-names.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { asReferencedKind, kindPolicy } from '../../../src/syncer/references/referenced-kind.ts';
import { configOf, snapshotOf, stored } from '../../cli/live/memory-clusters.ts';

/** Two groups that both have the kind; the core group is `''`. */
const PAIRS = [
  ['Gateway', 'networking.istio.io', 'gateway.networking.k8s.io'],
  ['Backup', 'velero.io', 'postgresql.cnpg.io'],
  ['Service', '', 'serving.knative.dev'],
  ['Endpoints', '', 'example.com'],
] as const;

async function planOf(kind: string, groups: readonly string[], referenced: readonly string[]) {
  const custom = groups.filter((group) => group !== '');
  const patches = referenced.map(
    (group, at) =>
      `{path: metadata.annotations.g${at}, reference: {apiVersion: ${group === '' ? 'v1' : `${group}/v1`}, kind: ${kind}}}`,
  );
  const plural = `${kind.toLowerCase()}s`.replace(/ss$/u, 's');
  const config = configOf(`sync:
  toHost:
    customResources: {${custom.map((group) => `${plural}.${group}: {enabled: true}`).join(', ')}}
    endpoints: {patches: [${patches.join(', ')}]}
endpointSyncer: {name: vc, host: {namespace: host}}`);
  const objects = groups.map((group) =>
    stored({
      apiVersion: group === '' ? 'v1' : `${group}/v1`,
      kind,
      metadata: { namespace: 'shop', name: 'g' },
    }),
  );
  const web = stored({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { namespace: 'shop', name: 'web', annotations: { g0: 'g', g1: 'g' } },
  });
  const ofGroup = (object: KubeObject): boolean => object.apiVersion === 'v1';
  const snapshot = snapshotOf({ virtual: [web, ...objects.filter(ofGroup)], host: [] }, config);
  const more = groups.flatMap((group, at) => {
    const object = objects[at];
    if (group === '' || object === undefined) return [];
    const resource = { group, version: 'v1', kind, plural, isNamespaced: true };
    const kindOf = asReferencedKind(resource, resource, kindPolicy(config.sync));
    return [{ kind: kindOf, virtual: [object], host: [] }];
  });
  return rehearseSnapshot({ ...snapshot, referenced: [...snapshot.referenced, ...more] }, commandParts());
}

function groupOf(target: Target | undefined): string | undefined {
  if (target === undefined) return undefined;
  if (target.kind === 'other') return target.resource.group;
  return target.kind === 'object' ? target.plan.kind.resource.group : target.plan.seen.kind.virtual.group;
}

const wanted = (kind: string) => ({ key: 'shop/g', isHost: false, kind: knownKind(kind) });

test.each(PAIRS)('%s of %j and of %s', async (kind, one, other) => {
  const custom = [one, other].filter((group) => group !== '');
  for (const referenced of [[], custom]) {
    const plan = await planOf(kind, [one, other], referenced);
    for (const group of custom) {
      expect(groupOf(findTarget(plan, wanted(`${kind}.${group}`)))).toBe(group);
    }
    const choices = [one, other].map((group) => `--kind ${kind}${group === '' ? '' : `.${group}`}`);
    for (const choice of choices) expect(() => findTarget(plan, wanted(kind))).toThrow(choice);
    expect(findTarget(plan, wanted(`${kind}.nowhere.example.com`))).toBeUndefined();
  }
});

test('a kind of one group needs no group', async () => {
  const plan = await planOf('Gateway', ['networking.istio.io'], ['networking.istio.io']);
  expect(groupOf(findTarget(plan, wanted('Gateway')))).toBe('networking.istio.io');
});
