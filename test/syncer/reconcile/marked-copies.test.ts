/** Which host objects are copies in namespaces that are not mapped, and which of them are proven to be of this virtual cluster. */

import { describe, expect, test } from 'vitest';
import { ENDPOINTS, type KubeObject, type StringMap } from '../../../src/kube/object.ts';
import type { ClusterClient } from '../../../src/kube/types.ts';
import { isCopyFrom, listMarked, unmappedVirtual } from '../../../src/syncer/reconcile/marked-copies.ts';
import { translators } from '../translate/setup.ts';

const { names } = translators();
const ANNOTATIONS = {
  'vcluster.loft.sh/object-name': 'web',
  'vcluster.loft.sh/object-namespace': 'shop',
  'vcluster.loft.sh/object-uid': 'uid-1',
  'vcluster.loft.sh/object-kind': '/v1, Kind=Endpoints',
  'vcluster.loft.sh/object-host-name': 'web',
  'vcluster.loft.sh/object-host-namespace': 'left',
  'endpoint-syncer/last-synced': '{"v":1}',
};

function copy(changes: StringMap = {}, { namespace = 'left', vcluster = names.vcluster } = {}): KubeObject {
  const labels = { 'vcluster.loft.sh/managed-by': vcluster };
  return { metadata: { name: 'web', namespace, labels, annotations: { ...ANNOTATIONS, ...changes } } };
}

function without(key: keyof typeof ANNOTATIONS): KubeObject {
  const { [key]: _, ...annotations } = ANNOTATIONS;
  return { metadata: { ...copy().metadata, annotations } };
}

describe('a copy in a namespace that is not mapped', () => {
  test('names its object', () => {
    expect(unmappedVirtual(copy(), ENDPOINTS, names)).toEqual({ namespace: 'shop', name: 'web' });
  });

  test.each([
    ['in a mapped namespace', copy({}, { namespace: names.hostNamespace })],
    ['of another virtual cluster', copy({}, { vcluster: 'other' })],
    ['of another syncer, without our record', without('endpoint-syncer/last-synced')],
    ['that another client has cloned under this name', copy({ 'vcluster.loft.sh/object-host-name': 'else' })],
    [
      'in another place than its bookkeeping says',
      copy({ 'vcluster.loft.sh/object-host-namespace': 'else' }),
    ],
    ['of another kind', copy({ 'vcluster.loft.sh/object-kind': '/v1, Kind=Service' })],
    ['without the name of its object', without('vcluster.loft.sh/object-name')],
  ])('is none: %s', (_, object) => {
    expect(unmappedVirtual(object, ENDPOINTS, names)).toBeUndefined();
  });
});

test.each([
  ['the object', copy(), { metadata: { name: 'web', uid: 'uid-1' } }, true],
  ['an object that was created again', copy(), { metadata: { name: 'web', uid: 'uid-2' } }, false],
  ['no object', copy(), undefined, false],
  ['no recorded uid', without('vcluster.loft.sh/object-uid'), { metadata: { name: 'web' } }, false],
])('it is proven by the uid of its object: %s', (_, object, virtual, expected) => {
  expect(isCopyFrom(object, virtual)).toBe(expected);
});

test('more copies are listed than a call takes as arguments', async () => {
  const items = Array.from({ length: 200_000 }, () => copy());
  const client = { list: async () => ({ items, continueToken: '', resourceVersion: '1' }) };
  const options = { vcluster: names.vcluster, namespaces: undefined };
  const found = await listMarked(client as unknown as ClusterClient, ENDPOINTS, options); // nothing else is used
  expect(found.length).toBe(200_000);
});
