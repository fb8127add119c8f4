/** The order in which keys are reconciled at start. */

import { expect, test } from 'vitest';
import { ENDPOINTS, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import type { Lister } from '../../../src/kube/types.ts';
import { keysChangedSinceCopied } from '../../../src/syncer/reconcile/kind-sync.ts';
import { translators } from '../translate/setup.ts';

const { names } = translators(undefined, { vcluster: 'vc', hostNamespace: 'host' });

function cache(objects: readonly KubeObject[]): Lister {
  const byKey = new Map(objects.map((object) => [objectKey(object), object]));
  return {
    resource: ENDPOINTS,
    get: (key) => byKey.get(key),
    list: () => objects,
    byIndex: () => new Set(),
    size: objects.length,
  };
}

function virtual(name: string, resourceVersion: string): KubeObject {
  return { metadata: { name, namespace: 'default', resourceVersion } };
}

function copyOf(name: string, record: string | undefined): KubeObject {
  const annotations = record === undefined ? {} : { 'endpoint-syncer/last-synced': record };
  return { metadata: { name: `${name}-x-default-x-vc`, namespace: 'host', annotations } };
}

test('at start, objects that changed since they were copied, and those without a copy, are reconciled first', () => {
  const keys = keysChangedSinceCopied({
    virtual: cache([
      virtual('unchanged', '5'),
      virtual('changed', '9'),
      virtual('new', '7'),
      virtual('no-record', '3'),
    ]),
    host: cache([
      copyOf('unchanged', '{"v":1,"r":"5"}'),
      copyOf('changed', '{"v":1,"r":"5"}'),
      copyOf('no-record', undefined),
    ]),
    names,
  });
  expect(keys).toEqual(['default/changed', 'default/new', 'default/no-record']);
});
