/** The cases of `sync.yaml` about translation. The others are in `test/syncer/reconcile/cases.test.ts`. */

import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { NamespaceMode } from '../../../src/syncer/translate/types.ts';
import { ENDPOINTS, type KubeObject, type ObjectMeta, type StringMap } from '../../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import {
  isBookkeepingAnnotation,
  LAST_SYNCED,
  namedVirtual,
  ownershipOf,
  virtualByAnnotations,
} from '../../../src/syncer/translate/bookkeeping.ts';
import { endpointsContent } from '../../../src/syncer/kinds/endpoints.ts';
import { subsetsToHost } from '../kinds/setup.ts';
import { forgeHostObject } from '../../../src/syncer/translate/forge.ts';
import { labelsToHost, labelsToVirtual, markerLabels } from '../../../src/syncer/translate/labels.ts';
import { encodeLastSynced, shortHash } from '../../../src/syncer/translate/last-synced.ts';
import { translateSelector } from '../../../src/syncer/patch/labels-mode.ts';
import { isOverruled, loadCases, textAt, type WorkedCase } from '../../support/cases.ts';
import { merge, type Merged } from './merge-setup.ts';
import { LEGACY, SINGLE, translators } from './setup.ts';

const STORAGE_CLASS = { group: 'storage.k8s.io', version: 'v1', kind: 'StorageClass' };
const SECRET = { group: '', version: 'v1', kind: 'Secret' };

/** Cases of these families need the engine, a mapping store or EndpointSlices. */
const ELSEWHERE = /^(ep-(04|05|06|12|13|14|16|17)|eps-|event-|store-|rec-01)/;

const cases = loadCases('sync').filter(({ id }) => !ELSEWHERE.test(id));

function caseOf(id: string): WorkedCase {
  const found = loadCases('sync').find((one) => one.id === id);
  if (found === undefined) throw new Error(`no case ${id}`);
  return found;
}

function modeOf({ mode }: WorkedCase): NamespaceMode {
  return mode === 'multi-namespace-legacy' ? LEGACY : SINGLE;
}

function mapAt(object: JsonValue | undefined, key: string): StringMap {
  return ((object as JsonObject | undefined)?.[key] ?? {}) as StringMap;
}

/** vCluster's HostLabelsMap adds the markers to metadata, and to selectors without a host map. */
function hostLabels(one: WorkedCase): StringMap {
  const { input } = one;
  const { labels } = translators(modeOf(one));
  const host = labelsToHost(mapAt(input, 'vLabels'), labels);
  const isMetadata = input['isMetadata'] === true || input['pLabels'] === null;
  return isMetadata ? { ...host, ...markerLabels('suffix', textAt(input, 'vNamespace')) } : host;
}

function annotated(kind: string, side: JsonValue | undefined): KubeObject {
  const annotations = { ...(mapAt(side, 'annotations') as StringMap) };
  return { apiVersion: 'storage.k8s.io/v1', kind, metadata: { name: '', annotations } };
}

function withoutRecord(map: StringMap | undefined): StringMap {
  const { [LAST_SYNCED]: _record, ...rest } = map ?? {};
  return rest;
}

/**
 * vCluster's AnnotationsBidirectionalUpdate: the old states are the record, and as the old host state has no managed-annotations, its
 * keys are not there by our doing.
 */
async function annotationsUpdate({ input }: WorkedCase): Promise<JsonObject> {
  const excluded = input['excluded'] as string[];
  const kind = input['kind'] === 'Endpoints' ? ENDPOINTS : STORAGE_CLASS;
  const objectWith = (annotations: StringMap): KubeObject => annotated(kind.kind, { annotations });
  const record = recordOf(mapAt(input, 'virtualOld'), mapAt(input, 'hostOld'));
  const host = objectWith({ ...mapAt(input, 'host'), [LAST_SYNCED]: record });
  const merged = await merge({ kind, virtual: objectWith(mapAt(input, 'virtual')), host, excluded });
  return {
    virtual: merged.virtual.metadata.annotations ?? {},
    host: withoutRecord(merged.host.metadata.annotations),
  };
}

function recordOf(virtual: StringMap, host: StringMap): string {
  const hashAt = (map: StringMap, key: string): string | undefined =>
    map[key] === undefined ? undefined : shortHash(map[key]);
  const entries = [...new Set([...Object.keys(virtual), ...Object.keys(host)])].map(
    (key) =>
      [shortHash(key), { virtual: hashAt(virtual, key), host: hashAt(host, key), isFromHost: true }] as const,
  );
  return encodeLastSynced({ annotations: new Map(entries), labels: new Map(), paths: new Map() });
}

function mergedSecret({ input }: WorkedCase): Promise<Merged> {
  const [virtual, host] = [annotated('Secret', input['virtual']), annotated('Secret', input['host'])];
  return merge({ kind: SECRET, virtual, host });
}

function nullIfEmpty(map: StringMap): StringMap | null {
  return Object.keys(map).length === 0 ? null : map;
}

const RUNNERS: Record<string, (one: WorkedCase) => unknown> = {
  HostLabelsMap: hostLabels,
  VirtualLabelsMap: (one) =>
    nullIfEmpty(
      labelsToVirtual(
        mapAt(one.input, 'pLabels'),
        translators(modeOf(one)).labels,
        mapAt(one.input, 'vLabels'),
      ),
    ),
  'HostLabelsMap applied 11 times (i=0..10), vNamespace test-<i>, starting from {vcluster.loft.sh/namespace: test}':
    () => nestedLabels().at(-1),
  HostLabelSelector: (one) =>
    translateSelector(one.input['selector'] ?? null, translators(modeOf(one)).labels.keyToHost),
  HostAnnotations: async (one) => withoutRecord((await mergedSecret(one)).host.metadata.annotations),
  VirtualAnnotations: async (one) => (await mergedSecret(one)).virtual.metadata.annotations,
  AnnotationsBidirectionalUpdate: annotationsUpdate,
  'CopyObjectWithName + HostAnnotations': async ({ input }) =>
    withoutRecord(
      (
        await merge({
          kind: STORAGE_CLASS,
          virtual: annotated('StorageClass', input['virtual']),
          host: undefined,
          excluded: input['excluded'] as string[],
        })
      ).host.metadata.annotations,
    ),
  TryToTranslateBackByAnnotations: ({ input }) => {
    const metadata = input['object'] as ObjectMeta;
    return virtualByAnnotations({ metadata }, SECRET) ?? { name: '', namespace: '' };
  },
  'IsManaged+HostToVirtual at start-up (Migrate, name check off)': ({ input }) => {
    const object: KubeObject = { metadata: input['object'] as ObjectMeta };
    const virtual = namedVirtual(object, SECRET, translators().names);
    if (virtual === undefined) return { mapping: null };
    return {
      mapping: {
        virtual: `${virtual.namespace}/${virtual.name}`,
        host: `${object.metadata.namespace}/${object.metadata.name}`,
      },
    };
  },
};

function nestedLabels(): StringMap[] {
  const { labels } = translators();
  const steps: StringMap[] = [{ 'vcluster.loft.sh/namespace': 'test' }];
  for (let i = 0; i <= 10; i++) {
    const host = labelsToHost(steps.at(-1) ?? {}, labels);
    steps.push({ ...host, ...markerLabels('suffix', `test-${i}`) });
  }
  return steps;
}

/** Cases without a function name: whole objects. */
const BY_ID: Record<string, (one: WorkedCase) => unknown> = {
  'ep-01': async ({ input }) => {
    const { metadata } = input['virtual'] as unknown as KubeObject;
    const { host } = await merge({ kind: ENDPOINTS, virtual: { metadata }, host: undefined });
    return {
      host: { metadata: { ...host.metadata, annotations: withoutRecord(host.metadata.annotations) } },
    };
  },
  'ep-02': async ({ input }) => {
    const [old, virtual] = [input['virtualOld'], input['virtual']] as unknown as [KubeObject, KubeObject];
    const first = await merge({ kind: ENDPOINTS, virtual: old, host: undefined });
    const { host } = await merge({ kind: ENDPOINTS, virtual, host: first.host });
    const metadata = { ...host.metadata, annotations: withoutRecord(host.metadata.annotations) };
    return { host: { metadata, subsets: host['subsets'] } };
  },
  'ep-08': translatedSubsets,
  'ep-09': translatedSubsets,
  'ep-10': translatedSubsets,
  'rec-02': ({ input }) => {
    const metadata = input['host'] as ObjectMeta;
    const ownership = ownershipOf({ metadata }, SECRET, translators().names);
    return ownership.kind === 'ours' ? 'ours' : { change: 'none on either side' }['change'];
  },
};

function translatedSubsets(one: WorkedCase): unknown {
  return { subsets: subsetsToHost(one.input['subsets'] ?? null, 'test', translators(modeOf(one)).names) };
}

function run(one: WorkedCase): unknown {
  const runner = RUNNERS[textAt(one.input, 'fn')] ?? BY_ID[one.id];
  if (runner === undefined) throw new Error(`nothing runs case ${one.id}`);
  return runner(one);
}

function expectedOf({ id, expected }: WorkedCase): unknown {
  return id === 'rec-02' ? (expected as JsonObject)['change'] : expected;
}

describe('cases of test/cases', () => {
  const runnable = cases.filter((one) => !isOverruled(one) && one.id !== 'rec-04');

  test.each(runnable)('$id: $note', async (one) => {
    expect(await run(one)).toEqual(expectedOf(one));
  });

  test('exactly the cases that are marked as overruled differ', async () => {
    const different: string[] = [];
    for (const one of [...runnable, caseOf('labels-10'), caseOf('annot-06')])
      if (!isDeepStrictEqual(await run(one), expectedOf(one))) different.push(one.id);
    expect(different).toEqual(cases.filter(isOverruled).map(({ id }) => id));
  });
});

describe('cases that the design overrules', () => {
  test('labels-10: the labels are those of the case, plus the markers', () => {
    const one = caseOf('labels-10');
    expect(run(one)).toEqual({ ...(one.expected as JsonObject), ...markerLabels('suffix', 'test') });
  });

  test('annot-06: the virtual change takes precedence for its key, the other key is synced back', async () => {
    const { virtual, host } = (await run(caseOf('annot-06'))) as Record<string, StringMap>;
    expect(virtual).toEqual({ a: '2', h: 'new' });
    expect(Object.entries(host ?? {}).filter(([key]) => !isBookkeepingAnnotation(key))).toEqual([
      ['a', '2'],
      ['h', 'new'],
    ]);
  });

  test('rec-01: the host object is equal to a new translation', async () => {
    const { input, expected } = caseOf('rec-01');
    const { data, ...metadata } = input['virtual'] as ObjectMeta;
    const { host } = await merge({
      kind: SECRET,
      virtual: { metadata, data },
      host: undefined,
    });
    const { app: _app, ...annotations } = mapAt(expected, 'hostAnnotations');
    expect(withoutRecord(host.metadata.annotations)).toEqual(annotations);
    expect(host.metadata.labels).toEqual(mapAt(expected, 'hostLabels'));
    expect(host['data']).toEqual(data);
  });
});

test('rec-04: host annotations and labels are synced back, later virtual ones to the host, and nothing is lost', async () => {
  const own: KubeObject = {
    metadata: { name: 'a', namespace: 'b', annotations: { 'some-annotation': '1' } },
  };
  const first = (await merge({ kind: ENDPOINTS, virtual: own, host: undefined })).host;
  first.metadata.annotations = { ...first.metadata.annotations, 'host-annotation': '1' };
  first.metadata.labels = { ...first.metadata.labels, 'host-cluster-label': '1' };
  const second = await merge({ kind: ENDPOINTS, virtual: own, host: first });
  expect(second.virtual.metadata.annotations).toEqual({ 'some-annotation': '1', 'host-annotation': '1' });
  expect(second.virtual.metadata.labels).toEqual({ 'host-cluster-label': '1' });

  const { metadata } = second.virtual;
  metadata.annotations = { ...metadata.annotations, 'vcluster-annotation': '2' };
  metadata.labels = { ...metadata.labels, 'vcluster-label': '2' };
  const third = await merge({ kind: ENDPOINTS, virtual: { metadata }, host: second.host });
  expect(third.isVirtualChanged).toBe(false);
  expect(third.host.metadata.annotations).toMatchObject({
    'vcluster-annotation': '2',
    'host-annotation': '1',
  });
  expect(third.host.metadata.labels).toMatchObject({ 'vcluster-label': '2', 'host-cluster-label': '1' });
});

test('labels-08: every level of nested virtual clusters is reversible', () => {
  const { labels } = translators();
  const steps = nestedLabels();
  const back = steps.slice(1).map((step, i) => labelsToVirtual(step, labels, steps[i]));
  expect(back).toEqual(steps.slice(0, -1));
});

test('labels-09: the selector is reversible', () => {
  const { labels } = translators();
  const { selector } = caseOf('labels-09').input;
  expect(
    translateSelector(translateSelector(selector ?? null, labels.keyToHost), labels.keyToVirtual),
  ).toEqual(selector);
});

test('a host copy has no server-set fields', () => {
  const virtual: KubeObject = {
    metadata: {
      name: 'a',
      namespace: 'b',
      generateName: 'a-',
      finalizers: ['x'],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
      managedFields: [],
      resourceVersion: '1',
      uid: 'u',
      generation: 3,
      creationTimestamp: 't',
      deletionTimestamp: 't',
      selfLink: '/',
    },
  };
  const { names, labels } = translators();
  const target = names.toHost({ name: 'a', namespace: 'b' }) ?? { name: '', namespace: '' };
  const copy = forgeHostObject(virtual, {
    kind: ENDPOINTS,
    content: endpointsContent,
    target,
    names,
    labels,
  });
  expect(Object.keys(copy.metadata).toSorted()).toEqual(['annotations', 'labels', 'name', 'namespace']);
});
