/** What `status`, `explain` and `diff` say of an object against what the engine does with it: each kind of plan, of each kind of object, with and without
 * vCluster's own sync of that kind. */

import { describe, expect, test } from 'vitest';
import { invariant } from '../../../src/base/errors.ts';
import { qualifiedPlural } from '../../../src/kube/memory-cluster.ts';
import { isTerminating, keyOf, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { knownKind } from '../../../src/syncer/rehearsal/kind-names.ts';
import { findTarget } from '../../../src/syncer/rehearsal/find-target.ts';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import { SYNCED_KEYS } from '../../../src/syncer/kinds/synced-kinds.ts';
import { factsOf } from '../../../src/syncer/rehearsal/object-status.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { StageRecorder, writesOf } from '../../../src/syncer/rehearsal/stages.ts';
import { rowOf, rowsOf } from '../../../src/syncer/rehearsal/status-rows.ts';
import type { Snapshot, WorldPlan } from '../../../src/syncer/rehearsal/snapshot.ts';
import {
  applied,
  configOf,
  snapshotOf,
  stored,
  type MemoryClusters,
} from '../../cli/live/memory-clusters.ts';
import { configWith, hostWeb, NOW, object, selecting, service, sliceOf, web } from './status-fixtures.ts';

const CONFIG = configOf(configWith({ own: '  services: sync' }));
const REPORTS = { lease: undefined, runsOther: false, nowMs: NOW, events: new Map() };

type Side = readonly KubeObject[];

const edited = (side: Side, kind: string, edit: (one: KubeObject) => KubeObject): Side =>
  side.map((one) => (one.kind === kind ? stored(edit(one), one) : one));
const without = (side: Side, kind: string): Side => side.filter((one) => one.kind !== kind);
/** With another uid. */
const again = (side: Side, kind: string): Side =>
  side.map((one) =>
    one.kind === kind ? stored({ ...one, metadata: { ...one.metadata, uid: `${kind}-2` } }) : one,
  );
const labelled = (one: KubeObject, labels: Readonly<Record<string, string>>): KubeObject => ({
  ...one,
  metadata: { ...one.metadata, labels: { ...one.metadata.labels, ...labels } },
});
const held = (one: KubeObject): KubeObject => ({
  ...one,
  metadata: { ...one.metadata, finalizers: ['example.com/hold'] },
});
const ending = (one: KubeObject): KubeObject => {
  const deletion = { deletionTimestamp: '2026-11-28T10:00:00Z', finalizers: ['example.com/hold'] };
  return { ...one, metadata: { ...one.metadata, ...deletion } };
};

interface Kind {
  readonly key: string;
  readonly virtual: Side;
  /** The content in another way: `replaced` cannot be written over what is there, `moved` may be. */
  readonly replaced?: (one: KubeObject) => KubeObject;
  readonly moved?: (one: KubeObject) => KubeObject;
}

const KINDS: Readonly<Record<string, Kind>> = {
  Endpoints: { key: 'shop/web', virtual: [web()] },
  EndpointSlice: {
    key: 'shop/web-1',
    virtual: [sliceOf('web', 'mesh.example.com')],
    replaced: (one) => ({ ...one, addressType: 'IPv6' }),
    moved: (one) => labelled(one, { 'kubernetes.io/service-name': 'other' }),
  },
  Service: {
    key: 'shop/web',
    virtual: [web(), service()],
    replaced: (one) => ({ ...one, spec: { clusterIP: 'None', ports: [{ port: 80 }] } }),
  },
};

type Edit = (clusters: MemoryClusters, kind: string) => MemoryClusters;

/** Of the clusters after a sync. */
const SITUATIONS: Readonly<Record<string, Edit>> = {
  'in step': (clusters) => clusters,
  'not on the host': ({ virtual, host }, kind) => ({ virtual, host: without(host, kind) }),
  'another label': ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, (one) => labelled(one, { tier: 'gold' })),
    host,
  }),
  'another label on the host': ({ virtual, host }, kind) => ({
    virtual,
    host: edited(host, kind, (one) => labelled(one, { tier: 'gold' })),
  }),
  replaced: ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, KINDS[kind]?.replaced ?? ((one) => one)),
    host,
  }),
  moved: ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, KINDS[kind]?.moved ?? ((one) => one)),
    host,
  }),
  'created again': ({ virtual, host }, kind) => ({ virtual: again(virtual, kind), host }),
  'created again, and replaced': ({ virtual, host }, kind) => ({
    virtual: again(edited(virtual, kind, KINDS[kind]?.replaced ?? ((one) => one)), kind),
    host,
  }),
  'replaced, and changed on the host': ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, KINDS[kind]?.replaced ?? ((one) => one)),
    host: edited(host, kind, (one) => labelled(one, { tier: 'gold' })),
  }),
  'replaced, while a finalizer holds the copy': ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, KINDS[kind]?.replaced ?? ((one) => one)),
    host: edited(host, kind, held),
  }),
  'gone, while a finalizer holds the copy': ({ virtual, host }, kind) => ({
    virtual: without(virtual, kind),
    host: edited(host, kind, held),
  }),
  gone: ({ virtual, host }, kind) => ({ virtual: without(virtual, kind), host }),
  'a Service with a selector': ({ virtual, host }) => ({
    virtual: [...without(virtual, 'Service'), selecting()],
    host,
  }),
  'opted out': ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, (one) => labelled(one, { 'vcluster.loft.sh/controlled-by': 'me' })),
    host,
  }),
  'held by a finalizer': ({ virtual, host }, kind) => ({ virtual, host: edited(host, kind, ending) }),
  'changed, and held by a finalizer': ({ virtual, host }, kind) => ({
    virtual: edited(virtual, kind, (one) => labelled(one, { tier: 'gold' })),
    host: edited(host, kind, ending),
  }),
  'a copy by another client': ({ virtual, host }, kind) => ({
    virtual,
    host: edited(host, kind, ({ metadata: { name, namespace }, ...rest }) => ({
      ...rest,
      metadata: { name, ...(namespace !== undefined && { namespace }) },
    })),
  }),
};

const MODES = { alone: [], 'beside vCluster': SYNCED_KEYS } as const;

function configIn(mode: keyof typeof MODES, config = CONFIG): Config {
  return { ...config, sync: { ...config.sync, syncedByVcluster: MODES[mode] } };
}

async function planned(
  clusters: MemoryClusters,
  config: Config,
  more: Partial<Snapshot> = {},
): Promise<WorldPlan> {
  return rehearseSnapshot({ ...snapshotOf(clusters, config), ...more }, commandParts());
}

const CASES = Object.keys(KINDS).flatMap((kind) =>
  Object.keys(SITUATIONS).flatMap((situation) =>
    (Object.keys(MODES) as (keyof typeof MODES)[]).map((mode) => [kind, situation, mode] as const),
  ),
);

/** What has become of the copy in the clusters of the engine, with the verb of `explain`. */
type Fate = 'created' | 'ending' | 'deleted' | 'recreated' | 'updated' | 'kept' | 'none';

function fateOf(before: KubeObject | undefined, after: KubeObject | undefined): Fate {
  if (before === undefined) return after === undefined ? 'none' : 'created';
  if (after === undefined) return 'deleted';
  if (after.metadata.uid !== before.metadata.uid) return 'recreated';
  if (isTerminating(after) && !isTerminating(before)) return 'ending';
  return after.metadata.resourceVersion === before.metadata.resourceVersion ? 'kept' : 'updated';
}

const IS_SAID: Readonly<Record<Fate, RegExp>> = {
  created: /is about to be created/,
  deleted: /is about to be deleted: /,
  ending: /is about to be deleted(?: and created again)?: /,
  recreated: /is about to be deleted and created again: /,
  updated: /is about to be (?:updated|rewritten|taken over|copied)|a change is about to be written to it/,
  kept: /^(?!.*(?:deleted and|about to be (?!copied to the virtual)))/,
  none: /^(?!.*about to be)/,
};
const VERBS: Readonly<Record<Fate, readonly string[]>> = {
  created: ['create'],
  deleted: ['delete'],
  ending: ['delete'],
  recreated: ['recreate'],
  updated: ['update'],
  kept: [],
  none: [],
};

describe('the sentence is what the engine does', () => {
  test.each(CASES)('%s: %s, %s', async (kind, situation, mode) => {
    const { key, virtual } = KINDS[kind] ?? { key: '', virtual: [] };
    const first = { virtual, host: [] };
    const synced = applied(first, (await planned(first, CONFIG)).changes);
    const clusters = SITUATIONS[situation]?.(synced, kind) ?? synced;
    const plan = await planned(clusters, configIn(mode));
    const row = rowsOf(plan, REPORTS).find((one) => one.kind === kind && keyOf(one.virtual) === key);
    invariant(row, 'every object has a row');
    const hostKey = keyOf(row.host);
    const ofKind = plan.objects.filter((one) => one.kind.resource.kind === kind && one.key === key);
    const resource = ofKind.map((one) => qualifiedPlural(one.kind.resource))[0] ?? '';
    const before = clusters.host.find((one) => one.kind === kind && objectKey(one) === hostKey);
    const fate = fateOf(before, plan.clusters.host.get(resource, hostKey));
    const { sentence, state } = row.status;
    expect({ fate, sentence, isSaid: IS_SAID[fate].test(sentence) }).toMatchObject({ isSaid: true });
    const writes = writesOf(ofKind.flatMap(({ changes }) => changes));
    expect(writes.flatMap(({ cluster, verb }) => (cluster === 'host' ? [verb] : []))).toEqual(VERBS[fate]);
    // What is in sync is what the engine leaves without a complaint.
    const isLeft = plan.events.some(
      ({ note, resource: of }) => of.kind === kind && note.includes('left as it is'),
    );
    const isAtRest =
      writes.length === 0 && !isLeft && plan.objects.every(({ decision }) => decision.kind === 'update');
    expect({ sentence, isInSync: state === 'synced' }).toEqual({
      sentence,
      isInSync: isAtRest && fate === 'kept',
    });
  });
});

test.each([
  { mode: 'alone', verbs: ['delete'] },
  { mode: 'beside vCluster', verbs: [] },
] as const)(
  'the copy of a slice that is refused for the Service of others, and is at another one: $verbs $mode',
  async ({ mode, verbs }) => {
    const first = { virtual: [sliceOf('web', 'mesh.example.com')], host: [] };
    const { virtual, host } = applied(first, (await planned(first, CONFIG)).changes);
    const ofOthers = labelled(object('Service', hostWeb), { 'vcluster.loft.sh/managed-by': 'other' });
    // As vCluster writes it: with the name in the virtual cluster.
    const moved = edited(host, 'EndpointSlice', (one) =>
      labelled(one, { 'kubernetes.io/service-name': 'web' }),
    );
    const plan = await planned({ virtual, host: [...moved, ofOthers] }, configIn(mode));
    const slice = rowsOf(plan, REPORTS).find(({ kind }) => kind === 'EndpointSlice');
    expect(slice?.status.sentence).toMatch(/NotManaged|is not the copy of this object's Service/);
    expect(writesOf(plan.changes).map(({ verb }) => verb)).toEqual(verbs);
  },
);

describe('the sentence about an import is what the engine does', () => {
  const secret = (key: string, more: object = {}): KubeObject =>
    object('Secret', key, { type: 'Opaque', ...more });
  const naming = web({ secret: 'tls' });

  interface ImportCase {
    readonly virtual: Side;
    readonly host?: Side;
    readonly edit?: (clusters: MemoryClusters) => MemoryClusters;
    readonly closed?: boolean;
    readonly expected: readonly [state: string, sentence: RegExp];
    readonly writes: readonly string[];
  }

  const immutable = { immutable: true, data: { a: 'YQ==' } };
  const CASES_OF_IMPORTS: Readonly<Record<string, ImportCase>> = {
    'a host namespace that does not exist': {
      virtual: [naming, secret('shop/tls')],
      edit: ({ virtual, host }) => ({ virtual, host: without(host, 'Secret') }),
      closed: true,
      expected: ['failed', /is not imported: the host namespace "host" does not exist/],
      writes: [],
    },
    'a Secret of the host that must not be copied, as its content shows': {
      virtual: [naming],
      host: [secret('host/tls', { type: 'kubernetes.io/service-account-token' })],
      expected: ['refused', /is not imported: .+ must not be copied/],
      writes: [],
    },
    'a Secret whose name on the host another client has taken': {
      virtual: [naming, secret('shop/tls')],
      host: [secret(`host/${hostNameShort('tls', 'shop', 'vc')}`)],
      expected: ['refused', /is not imported: .+ which is an object that this syncer did not create/],
      writes: [],
    },
    'an immutable Secret with other data': {
      virtual: [naming, secret('shop/tls', immutable)],
      edit: ({ virtual, host }) => ({
        virtual: edited(virtual, 'Secret', (one) => ({ ...one, data: { a: 'Yg==' } })),
        host,
      }),
      expected: ['pending', /its copy is about to be deleted and created again/],
      writes: ['recreate host: differs from the virtual object, and it is immutable'],
    },
    'a Secret with other data': {
      virtual: [naming, secret('shop/tls')],
      edit: ({ virtual, host }) => ({
        virtual: edited(virtual, 'Secret', (one) => ({ ...one, data: { a: 'Yg==' } })),
        host,
      }),
      expected: ['pending', /its copy is about to be written/],
      writes: ['update host: differs from the virtual object'],
    },
    'a Secret that is not referenced any more': {
      virtual: [naming, secret('shop/tls')],
      edit: ({ virtual, host }) => ({ virtual: edited(virtual, 'Endpoints', () => web()), host }),
      expected: ['pending', /its copy is about to be deleted: no longer referenced/],
      writes: ['delete host: no longer referenced'],
    },
  };

  test.each(Object.entries(CASES_OF_IMPORTS))(
    '%s',
    async (_, { virtual, host = [], edit, closed, expected, writes }) => {
      let clusters: MemoryClusters = { virtual, host };
      if (edit !== undefined) clusters = edit(applied(clusters, (await planned(clusters, CONFIG)).changes));
      const closedNamespaces = new Map(closed === true ? [['host', undefined]] : []);
      const plan = await planned(clusters, CONFIG, { closedNamespaces });
      const row = rowsOf(plan, REPORTS).find((one) => one.kind === 'Secret');
      expect(row?.status.state).toBe(expected[0]);
      expect(row?.status.sentence).toMatch(expected[1]);
      const made = writesOf(plan.references.flatMap(({ changes }) => changes));
      expect(made.map(({ cluster, verb, reason }) => `${verb} ${cluster}: ${reason}`)).toEqual(writes);
    },
  );
});

test('an import whose name is taken, of a kind of which only copies are watched', async () => {
  const config = configOf(`sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.annotations.secret
          reference: {apiVersion: v1, kind: ConfigMap, kindPath: kind, namePath: name}
endpointSyncer: {name: vc, host: {namespace: host}}
`);
  const virtual = [web({ secret: '{"kind":"Secret","name":"tls"}' }), object('Secret', 'shop/tls')];
  const host = [object('Secret', `host/${hostNameShort('tls', 'shop', 'vc')}`)];
  const plan = await planned({ virtual, host }, config);
  const row = rowsOf(plan, REPORTS).find((one) => one.kind === 'Secret');
  expect(row?.status).toMatchObject({ state: 'refused', reason: 'NotManaged' });
  expect(row?.status.sentence).toMatch(
    /is not imported: .+ which is an object that this syncer did not create/,
  );
});

describe('a host object by its own name', () => {
  const hostWeb = 'host/web-x-shop-x-vc';
  const byController = object(
    'Endpoints',
    hostWeb,
    {},
    { labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } },
  );

  const sentenceOf = async (virtual: Side, host: Side): Promise<string> => {
    const plan = await planned({ virtual, host }, configOf(configWith()));
    const kind = knownKind('Endpoints');
    const target = findTarget(plan, { key: hostWeb, isHost: true, kind });
    invariant(target, 'the host object exists');
    return rowOf(target, { ...factsOf(plan, REPORTS), events: [] }, plan.snapshot.config).status.sentence;
  };

  test('keeps an object from being synced only if the engine says so', async () => {
    expect(await sentenceOf([web()], [object('Endpoints', hostWeb)])).toMatch(
      /"shop\/web" cannot be synced while/,
    );
    expect(await sentenceOf([web(), selecting()], [byController])).toMatch(/so it is left untouched$/);
  });

  test('is the copy that is about to be taken over', async () => {
    expect(await sentenceOf([web(), service()], [byController])).toMatch(/is about to be taken over/);
  });
});

test('the address of a copy is that of its own object', async () => {
  const balanced = { spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } };
  const virtual = [
    object('Service', 'c/a-x-b', balanced, { creationTimestamp: '2026-01-01T00:00:00Z' }),
    object('Service', 'b-x-c/a', balanced, { creationTimestamp: '2026-01-02T00:00:00Z' }),
  ];
  const first = { virtual, host: [] };
  const clusters = applied(first, (await planned(first, CONFIG)).changes);
  const rows = rowsOf(await planned(clusters, CONFIG), REPORTS);
  const addressed = rows.map(({ virtual: { name }, status, address }) => [
    name,
    status.state,
    address === undefined,
  ]);
  expect(addressed).toEqual([
    ['a', 'refused', true],
    ['a-x-b', 'synced', false],
  ]);
});

test('an object whose copy goes has not passed the gate', async () => {
  const first = { virtual: [web()], host: [] };
  const { host } = applied(first, (await planned(first, CONFIG)).changes);
  const virtual = [web(), selecting()];
  await using recorder = new StageRecorder();
  const gateWith = async (copies: Side): Promise<unknown> => {
    const plan = await rehearseSnapshot(snapshotOf({ virtual, host: copies }, CONFIG), {
      ...commandParts(),
      sandbox: recorder.sandbox,
      createPipeline: recorder.createPipeline,
    });
    const [one] = plan.objects.filter(({ kind }) => kind.resource.kind === 'Endpoints');
    return one && (await recorder.stagesOf(one)).gate;
  };
  expect(await gateWith(host)).toEqual({ isPassed: false, detail: 'service has a selector' });
  expect(await gateWith(host.map(ending))).toEqual({
    isPassed: false,
    detail: 'the host copy is being deleted',
  });
});

test('copies at other places are not the copy', async () => {
  const first = { virtual: [web()], host: [] };
  const synced = applied(first, (await planned(first, CONFIG)).changes);
  const config = configOf(
    configWith({ sync: '    namespaces: {enabled: true, mappings: {byName: {shop: shared}}}' }),
  );
  const both = await planned(synced, config);
  const [stray] = synced.host;
  invariant(stray, 'the first sync has made a copy');
  const moved = applied(synced, both.changes);
  const plan = await planned({ ...moved, host: [...moved.host, stray] }, config);
  expect(rowsOf(plan, REPORTS).map(({ status }) => status.sentence)).toEqual([
    expect.stringMatching(
      /^Endpoints "shop\/web" is not in sync: "host\/web-x-shop-x-vc" is about to be deleted: belongs elsewhere now/,
    ),
  ]);
});
