/** The content and the metadata of imported copies. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  forgeHostImport,
  forgeVirtualImport,
  isImport,
} from '../../../src/syncer/references/import-forge.ts';
import { translators } from '../translate/setup.ts';
import { ownershipOf } from '../../../src/syncer/translate/bookkeeping.ts';
import { needsWrite, NO_CONTENT } from '../../../src/syncer/translate/content.ts';
import { forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { mergePair } from '../../../src/syncer/translate/merge.ts';
import { GADGET_KIND } from './gadget-kind.ts';

const { names, labels } = translators(undefined, { vcluster: 'vc', hostNamespace: 'host' });
const OPTIONS = { names, labels, owner: undefined };
const VIRTUAL = { namespace: 'default', name: 'g' };
const TARGET = names.referenceToHost(VIRTUAL, GADGET_KIND.host) ?? VIRTUAL;

function forged(virtual: KubeObject, host?: KubeObject): Promise<KubeObject> {
  return forgeHostImport(virtual, GADGET_KIND, { target: TARGET, host }, OPTIONS);
}

/** With every label and annotation of the original. */
async function copyOfEarlier(virtual: KubeObject): Promise<KubeObject> {
  const kind = { ...OPTIONS, kind: GADGET_KIND.host, content: NO_CONTENT, target: TARGET };
  const desired = forgeHostObject({ metadata: virtual.metadata }, kind);
  const flows = {
    flowOf: (): 'toHost' => 'toHost',
    rulesOf: () => undefined,
    twoWayPaths: () => [],
    hostOwnedPaths: () => [],
  };
  const pair = { virtual, host: undefined, labels: OPTIONS.labels, flows };
  return (await mergePair(pair, { forward: async () => ({ desired }) })).host;
}

const text = fc.string({ maxLength: 5 });
const map = fc.dictionary(
  fc.oneof(text, fc.constantFrom('release', 'vcluster.loft.sh/managed-by', 'a')),
  text,
  { maxKeys: 4, noNullPrototype: true },
);
const content = fc.record(
  { spec: fc.jsonValue(), subsets: fc.jsonValue(), status: fc.jsonValue() },
  { requiredKeys: ['spec'] },
);
const object = fc.record({ labels: map, annotations: map, content }).map(
  ({ labels, annotations, content: members }): KubeObject =>
    ({
      apiVersion: 'example.com/v1',
      kind: 'Gadget',
      metadata: {
        ...VIRTUAL,
        uid: 'u1',
        resourceVersion: '5',
        generation: 3,
        labels,
        annotations,
        finalizers: ['x/y'],
        ownerReferences: [],
      },
      ...members,
    }) as KubeObject,
);

describe('the copy on the host', () => {
  test('has the ownership marker and all content except status and server-set metadata', async () => {
    await fc.assert(
      fc.asyncProperty(object, async (virtual) => {
        const copy = await forged(virtual);
        expect(ownershipOf(copy, GADGET_KIND.host, names)).toEqual({
          kind: 'ours',
          virtual: VIRTUAL,
          uid: 'u1',
        });
        expect(copy['spec']).toEqual(virtual['spec']);
        expect(copy['subsets']).toEqual(virtual['subsets']);
        expect(Object.hasOwn(copy, 'status')).toBe(false);
        expect(copy.metadata).toMatchObject(TARGET);
        for (const field of ['finalizers', 'ownerReferences', 'generation', 'resourceVersion', 'uid'])
          expect(Object.hasOwn(copy.metadata, field)).toBe(false);
        expect(copy.metadata.labels?.['vcluster.loft.sh/managed-by']).toBe('vc');
      }),
    );
  });

  test.each([
    'replicator.v1.mittwald.de/replicate-to',
    'reflector.v1.k8s.emberstack.com/reflection-auto-enabled',
    'kubed.appscode.com/sync',
    'secret-copier.deckhouse.io/enabled',
    'objectset.rio.cattle.io/hash',
    'app.kubernetes.io/instance',
    'argocd.argoproj.io/instance',
    'kapp.k14s.io/app',
    'applyset.kubernetes.io/part-of',
    'cert-manager.io/allow-direct-injection',
  ])(
    'does not have %s, as a label or an annotation, by which a program of the host would act',
    async (key) => {
      const map = { [key]: 'x', 'example.com/kept': 'y' };
      const virtual: KubeObject = {
        metadata: { ...VIRTUAL, uid: 'u1', labels: map, annotations: map },
        data: {},
      };
      const { metadata } = await forged(virtual);
      expect(
        [metadata.labels, metadata.annotations].map((found) => [found?.[key], found?.['example.com/kept']]),
      ).toEqual([
        [undefined, 'y'],
        [undefined, 'y'],
      ]);
      // A copy that an earlier version made loses them.
      const { metadata: corrected } = await forged(virtual, await copyOfEarlier(virtual));
      expect([corrected.labels?.[key], corrected.annotations?.[key]]).toEqual([undefined, undefined]);
    },
  );

  test('needs no second write', async () => {
    await fc.assert(
      fc.asyncProperty(object, object, async (first, second) => {
        const there = await forged(first);
        const stored = {
          ...there,
          status: { foreign: 1 },
          metadata: { ...there.metadata, uid: 'h1', resourceVersion: '9', finalizers: ['t/h'] },
        };
        const next = await forged(second, stored);
        expect(next.metadata).toMatchObject({ uid: 'h1', resourceVersion: '9', finalizers: ['t/h'] });
        expect(next['status']).toEqual({ foreign: 1 });
        const again = await forged(second, next);
        expect(needsWrite(again, next)).toBe(false);
      }),
    );
  });

  test('keeps labels and annotations that other clients add, and reverts changes of synced ones', async () => {
    const virtual: KubeObject = {
      metadata: { ...VIRTUAL, uid: 'u1', labels: { a: '1' }, annotations: { b: '1' } },
    };
    const there = await forged(virtual);
    const { labels, annotations } = there.metadata;
    const metadata = {
      ...there.metadata,
      labels: { ...labels, a: 'x', l: 'foreign' },
      annotations: { ...annotations, b: 'x', n: 'foreign' },
    };
    const next = await forged(virtual, { ...there, metadata });
    expect(next.metadata.labels).toMatchObject({ a: '1', l: 'foreign' });
    expect(next.metadata.annotations).toMatchObject({ b: '1', n: 'foreign' });
  });
});

describe('the copy in the virtual cluster', () => {
  test('has the content of the original without its metadata', () => {
    fc.assert(
      fc.property(object, (source) => {
        const copy = forgeVirtualImport(source, GADGET_KIND, { virtual: VIRTUAL, current: undefined }, 'vc');
        expect(isImport(copy, 'vc')).toBe(true);
        expect(copy['spec']).toEqual(source['spec']);
        expect(Object.hasOwn(copy, 'status')).toBe(false);
        expect(copy.metadata).toEqual({
          ...VIRTUAL,
          labels: { 'vcluster.loft.sh/managed-by': 'vc' },
          annotations: {
            'vcluster.loft.sh/object-imported': 'true',
            'endpoint-syncer/imported-as': `${VIRTUAL.namespace}/${VIRTUAL.name}`,
          },
        });
      }),
    );
  });

  test('is recognised by annotation and label of this virtual cluster', () => {
    const copy = forgeVirtualImport(
      { metadata: VIRTUAL },
      GADGET_KIND,
      { virtual: VIRTUAL, current: undefined },
      'vc',
    );
    expect(isImport(copy, 'another')).toBe(false);
    expect(isImport({ metadata: { ...copy.metadata, labels: {} } }, 'vc')).toBe(false);
    expect(isImport({ metadata: { ...copy.metadata, annotations: {} } }, 'vc')).toBe(false);
    const earlier = { 'vcluster.loft.sh/object-imported': 'true' };
    expect(isImport({ metadata: { ...copy.metadata, annotations: earlier } }, 'vc')).toBe(true);
    for (const other of [{ name: 'mine' }, { namespace: 'mine' }])
      expect(isImport({ metadata: { ...copy.metadata, ...other } }, 'vc')).toBe(false);
  });
});
