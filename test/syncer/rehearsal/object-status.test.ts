/** The status sentence for every reason why an object is, or is not, synced. */

import { statusOfImport, statusOfOther } from '../../../src/syncer/rehearsal/import-status.ts';
import { statusOf, type StatusFacts } from '../../../src/syncer/rehearsal/object-status.ts';
import type { SyncStatus } from '../../../src/syncer/rehearsal/sync-status.ts';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { knownKind } from '../../../src/syncer/rehearsal/kind-names.ts';
import { findTarget } from '../../../src/syncer/rehearsal/find-target.ts';
import { commandParts } from '../../../src/cli/live/command-parts.ts';
import { rehearseSnapshot } from '../../../src/syncer/rehearsal/snapshot.ts';
import { namespaceAdvice } from '../../../src/syncer/reconcile/environment.ts';
import { KIND_CASES } from './kind-status-cases.ts';
import {
  NOW,
  configWith,
  object,
  web,
  event,
  hostWeb,
  editedHost,
  selecting,
  writtenAt,
  type Case,
} from './status-fixtures.ts';
import {
  applied,
  configOf,
  snapshotOf,
  stored,
  type MemoryClusters,
} from '../../cli/live/memory-clusters.ts';

/** Host Endpoints that the endpoints controller of the host created. */
const ofController = object(
  'Endpoints',
  hostWeb,
  {},
  { labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } },
);

const ENDS_AT = '2026-11-28T10:00:00Z';

function ending(one: KubeObject): KubeObject {
  const metadata = { ...one.metadata, deletionTimestamp: ENDS_AT, finalizers: ['example.com/hold'] };
  return { ...one, metadata };
}

/** As a kube-apiserver shows it whose namespace controller waits for an object. */
function endingNamespace(): KubeObject {
  const message =
    'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances';
  const conditions = [
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      status: 'False',
      message: 'All resources successfully discovered',
    },
    { type: 'NamespaceFinalizersRemaining', status: 'True', message },
  ];
  const metadata = { name: 'host', deletionTimestamp: ENDS_AT };
  return { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Terminating', conditions } };
}

const CASES: Record<string, Case> = {
  'in step': {
    virtual: [web()],
    after: (clusters) => clusters,
    expected: ['synced', '', `Endpoints "shop/web" is synced to "${hostWeb}"`],
  },
  'the API server itself': {
    virtual: [object('Endpoints', 'default/kubernetes')],
    key: 'default/kubernetes',
    expected: [
      'skipped',
      'never synced',
      /is never synced: it describes the API server itself, and the host has its own$/,
    ],
  },
  'a Service with a selector': {
    virtual: [web(), selecting()],
    expected: [
      'skipped',
      'service has a selector',
      `Endpoints "shop/web" is not copied: Service "shop/web" has a selector, so the host's own controllers create the host Endpoints`,
    ],
  },
  'a Service with a selector, without vCluster': {
    config: configWith({ own: '  services: sync' }),
    virtual: [web(), selecting()],
    expected: [
      'skipped',
      'service has a selector',
      `Endpoints "shop/web" is not copied: Service "shop/web" has a selector, so it is not copied either: no Pods are synced that it could select on the host`,
    ],
  },
  'a Service that gets a selector': {
    virtual: [web()],
    after: ({ virtual, host }) => ({
      virtual: [...virtual, selecting()],
      host,
    }),
    expected: [
      'pending',
      'service has a selector',
      /the host copy "host\/web-x-shop-x-vc" is about to be deleted: service has a selector/,
    ],
  },
  'no Service, and one is required': {
    config: configWith({ own: '  requireService: true' }),
    virtual: [web()],
    expected: [
      'skipped',
      'no service',
      /there is no Service "shop\/web", and endpointSyncer\.requireService is true$/,
    ],
  },
  'the name of another object': {
    virtual: [
      object('Endpoints', 'c/a-x-b', {}, { creationTimestamp: '2026-01-01T00:00:00Z' }),
      object('Endpoints', 'b-x-c/a', {}, { creationTimestamp: '2026-01-02T00:00:00Z' }),
    ],
    key: 'b-x-c/a',
    expected: [
      'refused',
      'NameConflict',
      /is not synced: the host name "host\/a-x-b-x-c-x-vc" already belongs to the copy of "c\/a-x-b"/,
    ],
  },
  'a foreign host object': {
    virtual: [web()],
    host: [object('Endpoints', hostWeb)],
    expected: [
      'refused',
      'NotManaged',
      /is not synced: the host already has Endpoints "host\/web-x-shop-x-vc" that this syncer did not create/,
    ],
  },
  'a foreign host object, by its own name': {
    virtual: [web()],
    host: [object('Endpoints', hostWeb)],
    key: hostWeb,
    isHost: true,
    expected: [
      'skipped',
      'NotManaged',
      /^host Endpoints ".+" is not a copy .+; "shop\/web" cannot be synced while it has this name$/,
    ],
  },
  'a namespace that is not mapped': {
    config: configWith({
      sync: '    namespaces: {enabled: true, mappingsOnly: true, mappings: {byName: {other: there}}}',
    }),
    virtual: [web()],
    expected: [
      'refused',
      'NamespaceNotMapped',
      /namespace "shop" has no entry in sync\.toHost\.namespaces\.mappings\.byName/,
    ],
  },
  'a host namespace that does not exist': {
    virtual: [web()],
    facts: { closedNamespaces: new Map([['host', undefined]]) },
    expected: [
      'failed',
      'NamespaceNotFound',
      'Endpoints "shop/web" is not synced: host namespace "host" does not exist; create it, correct endpointSyncer.host.namespace, or set endpointSyncer.createNamespaces to true',
    ],
  },
  'a host namespace that is being deleted': {
    virtual: [web()],
    facts: { closedNamespaces: new Map([['host', endingNamespace()]]) },
    expected: [
      'terminating',
      'Terminating',
      'Endpoints "shop/web" is not synced: host namespace "host" is being deleted since 2026-11-28T10:00:00Z: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
    ],
  },
  'opted out': {
    virtual: [web({}, { 'vcluster.loft.sh/controlled-by': 'me' })],
    expected: [
      'skipped',
      'controlled by another',
      /vcluster\.loft\.sh\/controlled-by on the virtual object assigns it to another controller; remove it to resume syncing$/,
    ],
  },
  'a copy that is opted out': {
    virtual: [web()],
    after: editedHost({ annotations: { 'vcluster.loft.sh/controlled-by': 'me' } }),
    expected: [
      'skipped',
      'controlled by another',
      /on the host copy assigns it .+; the host copy "host\/web-x-shop-x-vc" stays as it is; remove it/,
    ],
  },
  'a copy that outlives its object': {
    virtual: [web()],
    after: (clusters) => ({
      ...editedHost({ annotations: { 'vcluster.loft.sh/skip-backsync': 'true' } })(clusters),
      virtual: [],
    }),
    expected: [
      'skipped',
      'skip-backsync',
      /no longer exists, and vcluster\.loft\.sh\/skip-backsync on the host copy keeps that copy$/,
    ],
  },
  'a patch that fails': {
    config: configWith({ own: '  patches: {onError: object}' }),
    virtual: [web({}, { broken: 'x' })],
    expected: [
      'failed',
      'PatchFailed',
      /is not synced: patches\[1\] at metadata\.labels\.broken: TypeError: Cannot read properties of undefined/,
    ],
  },
  'a patch that fails alone': {
    virtual: [web({}, { broken: 'x' })],
    expected: [
      'failed',
      'PatchFailed',
      /is synced except for a patch that fails: patches\[1\] at metadata\.labels\.broken: TypeError: Cannot read/,
    ],
  },
  'a patch that is quarantined': {
    virtual: [web()],
    facts: {
      events: [
        event(
          'PatchFailed',
          'patches[1]: this expression is quarantined until later: it had to be stopped before',
        ),
      ],
    },
    expected: [
      'failed',
      'PatchFailed',
      /is not in sync: patches\[1\]: this expression is quarantined until later/,
    ],
  },
  contested: {
    virtual: [web()],
    after: editedHost({ labels: {} }),
    facts: {
      events: [
        event(
          'Contested',
          'Field manager "vcluster" keeps overwriting the host copy, so it is left alone for now.',
        ),
      ],
    },
    expected: [
      'contested',
      'Contested',
      'Endpoints "shop/web" is not in sync: field manager "vcluster" keeps overwriting the host copy, so it is left alone for now',
    ],
  },
  'contested, and corrected for now': {
    virtual: [web()],
    after: (clusters) => clusters,
    facts: { events: [event('Contested', 'Field manager "vcluster" keeps overwriting the host copy.')] },
    expected: [
      'contested',
      'Contested',
      /^Endpoints "shop\/web" is synced to ".+" for now: field manager "vcluster" keeps overwriting the host copy$/,
    ],
  },
  'contested a long time ago': {
    virtual: [web()],
    after: editedHost({ labels: {} }),
    facts: { events: [{ ...event('Contested', 'Field manager.'), lastMs: NOW - 3_600_000 }] },
    expected: [
      'pending',
      'differs',
      /is about to be updated; if this state persists, check that a daemon is running$/,
    ],
  },
  'waiting for re-creation': {
    virtual: [web()],
    facts: {
      events: [event('SyncError', 'Another client on the host keeps deleting the copy of this object.')],
    },
    expected: [
      'pending',
      'waiting for re-creation',
      /waits for the re-creation of "host\/web-x-shop-x-vc": another client on the host keeps deleting the copy/,
    ],
  },
  'a missing right': {
    virtual: [web()],
    facts: { missingRights: ['create endpoints in namespace "host" of the host cluster'] },
    expected: [
      'failed',
      'MissingRight',
      'Endpoints "shop/web" is not synced: a right is missing: create endpoints in namespace "host" of the host cluster',
    ],
  },
  'a write that the host refused': {
    virtual: [web()],
    facts: { events: [event('SyncError', 'Writing to the host failed and is retried: exceeded quota')] },
    expected: [
      'failed',
      'SyncError',
      /is not in sync: writing to the host failed and is retried: exceeded quota$/,
    ],
  },
  'a write that the host refused, after one that it took': {
    virtual: [web()],
    after: editedHost({ labels: {}, managedFields: [writtenAt(NOW - 120_000)] }),
    facts: { events: [event('SyncError', 'Writing to the host failed and is retried: exceeded quota')] },
    expected: ['failed', 'SyncError', /exceeded quota$/],
  },
  'a write that the host refused, before one that it took': {
    virtual: [web()],
    after: editedHost({ labels: {}, managedFields: [writtenAt(NOW)] }),
    facts: { events: [event('SyncError', 'Writing to the host failed and is retried: exceeded quota')] },
    expected: ['pending', 'differs', /is about to be updated/],
  },
  'a deletion by others, before the last write': {
    virtual: [web()],
    after: editedHost({ labels: {}, managedFields: [writtenAt(NOW)] }),
    facts: {
      events: [event('SyncError', 'Another client on the host keeps deleting the copy of this object.')],
    },
    expected: ['pending', 'differs', /is about to be updated/],
  },
  'no leader': {
    virtual: [web()],
    facts: { lease: { key: 'host/endpoint-syncer-vc', holder: '' } },
    expected: [
      'pending',
      'no leader',
      /is about to be created; no replica holds Lease "host\/endpoint-syncer-vc", so no daemon writes it$/,
    ],
  },
  'another replica leads': {
    virtual: [web()],
    facts: { lease: { key: 'host/endpoint-syncer-vc', holder: 'pod-2' } },
    expected: ['pending', 'no host copy', /is about to be created; the leader "pod-2" writes it$/],
  },
  'a daemon with another configuration': {
    virtual: [web()],
    facts: { runsOther: true },
    expected: [
      'pending',
      'another configuration',
      /is not in sync with this configuration: the daemon runs another configuration$/,
    ],
  },
  'a member of a fleet that is not synced': {
    virtual: [web()],
    facts: { fleetNote: 'limited: at least 1001 objects', runsOther: true },
    expected: [
      'failed',
      'NotJoined',
      /is not in sync: its vCluster is in the state limited: at least 1001 objects$/,
    ],
  },
  'a member that is not synced, an object that needs nothing': {
    virtual: [web()],
    after: (clusters) => clusters,
    facts: { fleetNote: 'limited: at least 1001 objects' },
    expected: ['synced', '', /is synced to/],
  },
  'a change on the host': {
    virtual: [web()],
    after: editedHost({ annotations: { note: 'x' } }),
    expected: [
      'pending',
      'differs',
      /is not in sync: a change on the host is about to be copied to the virtual cluster/,
    ],
  },
  'a virtual object that was created again': {
    virtual: [web()],
    after: ({ host }) => ({ virtual: [web()], host }),
    expected: [
      'pending',
      'virtual object was re-created',
      /is about to be rewritten: virtual object was re-created/,
    ],
  },
  'a copy of the endpoints controller': {
    virtual: [web(), object('Service', 'shop/web', { spec: {} })],
    host: [ofController],
    expected: [
      'pending',
      'taken over',
      /which the host's endpoints controller created, is about to be taken over/,
    ],
  },
  'a copy of the endpoints controller that is at work': {
    virtual: [web(), object('Service', 'shop/web', { spec: {} })],
    host: [ofController, object('Service', hostWeb, { spec: { selector: { app: 'a' } } })],
    expected: [
      'pending',
      'host Service has a selector',
      /is not synced yet: the host Service ".+" still has a selector/,
    ],
  },
  'sync is off': {
    config: configWith().replace('endpoints:\n', 'endpoints:\n      enabled: false\n'),
    virtual: [web()],
    expected: [
      'skipped',
      'disabled',
      'Endpoints "shop/web" is not synced: sync.toHost.endpoints.enabled is false',
    ],
  },
  'an import into the host': {
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    after: (clusters) => clusters,
    key: 'shop/tls',
    expected: ['synced', '', /^Secret "shop\/tls" is imported into the host as "host\/v[0-9a-z]{13}"$/],
  },
  'an import that a finalizer holds': {
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    after: ({ virtual, host }) => ({
      virtual,
      host: host.map((one) => (one.kind === 'Secret' ? ending(one) : one)),
    }),
    key: 'shop/tls',
    expected: [
      'terminating',
      'Terminating',
      /^Secret "shop\/tls": its copy "host\/v\w+" on the host is being deleted since 2026-11-28T10:00:00Z, and waits for the finalizer example\.com\/hold; it is created again when it is gone$/,
    ],
  },
  'an import from the host': {
    virtual: [web({ secret: 'tls' })],
    host: [object('Secret', 'host/tls')],
    after: (clusters) => clusters,
    key: 'shop/tls',
    expected: ['synced', '', 'Secret "shop/tls" is imported from the host, where it is "host/tls"'],
  },
  'an import that is kept while the object that references it fails': {
    config: configWith({ own: '  patches: {onError: object}' }),
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    after: ({ virtual, host }) => ({
      virtual: virtual.map((one) =>
        one.kind === 'Endpoints' ? stored(web({ secret: 'tls' }, { broken: 'x' }), one) : one,
      ),
      host,
    }),
    key: 'shop/tls',
    expected: [
      'synced',
      'kept',
      /^Secret "shop\/tls" is imported into the host as "host\/v[0-9a-z]{13}" and is kept: an object fails whose copy references it$/,
    ],
  },
  'an import that is due': {
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    key: 'shop/tls',
    expected: ['pending', 'is referenced', /is not in sync: its copy is about to be written: is referenced$/],
  },
  'a reference to nothing': {
    virtual: [web({ secret: 'tls' })],
    key: 'shop/tls',
    expected: ['refused', 'ReferenceNotFound', /^Secret "shop\/tls" is not imported: /],
  },
  'a Secret that is never copied': {
    virtual: [
      web({ secret: 'tls' }),
      object('Secret', 'shop/tls', { type: 'kubernetes.io/service-account-token' }),
    ],
    key: 'shop/tls',
    expected: ['refused', 'ReferenceNotAllowed', /it is the token of a service account/],
  },
  'a Secret that nothing names': {
    virtual: [web(), object('Secret', 'shop/tls')],
    key: 'shop/tls',
    kind: 'Secret',
    expected: [
      'skipped',
      'not referenced',
      'Secret "shop/tls" is not imported: no synced object references it',
    ],
  },
  'a Secret that another syncer copies': {
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    host: [
      object(
        'Secret',
        'host/tls-by-vcluster',
        {},
        {
          labels: { 'vcluster.loft.sh/managed-by': 'vc' },
          annotations: { 'vcluster.loft.sh/object-name': 'tls', 'vcluster.loft.sh/object-namespace': 'shop' },
        },
      ),
    ],
    key: 'shop/tls',
    expected: [
      'skipped',
      'copied by another syncer',
      'Secret "shop/tls" is on the host as "host/tls-by-vcluster": another syncer manages that copy',
    ],
  },
  'a kind whose syncing is not enabled': {
    config: configWith({ sync: '    secrets: {enabled: false}' }),
    virtual: [web({ secret: 'tls' }), object('Secret', 'shop/tls')],
    key: 'shop/tls',
    expected: [
      'skipped',
      'not configured',
      /is not imported: syncing of this kind is not enabled under sync\.toHost; references use the name "host\/v/,
    ],
  },
};

async function statusIn({
  config = configWith(),
  virtual = [],
  host = [],
  after,
  facts = {},
  key = 'shop/web',
  isHost = false,
  kind,
}: Case): Promise<SyncStatus | undefined> {
  const loaded = configOf(config);
  let clusters: MemoryClusters = { virtual, host };
  if (after !== undefined) {
    const { changes } = await rehearseSnapshot(snapshotOf(clusters, loaded), commandParts());
    clusters = after(applied(clusters, changes));
  }
  const plan = await rehearseSnapshot(snapshotOf(clusters, loaded), commandParts());
  const target = findTarget(plan, { key, isHost, kind: kind === undefined ? undefined : knownKind(kind) });
  if (target === undefined) return undefined;
  if (target.kind === 'import')
    return statusOfImport(target.plan, {
      nowMs: NOW,
      events: [],
      runsOther: false,
      namespaceAdvice: namespaceAdvice(loaded),
      ...facts,
    });
  if (target.kind === 'other') return statusOfOther(target, loaded);
  return statusOf(target.plan, {
    nowMs: NOW,
    events: [],
    closedNamespaces: new Map(),
    unreadNamespaces: new Set(),
    isRestSynced: loaded.patches.onError === 'path',
    namespaceAdvice: namespaceAdvice(loaded),
    lease: undefined,
    runsOther: false,
    syncsServices: loaded.services.mode === 'sync',
    missingRights: [],
    ...facts,
  });
}

/** Warnings that the daemon may have sent about an object which differs now, with what `status` may make of each while it is current. */
const WARNINGS: readonly (readonly [reason: string, note: string, cause?: SyncStatus['state']])[] = [
  ['SyncError', 'Writing to the host failed and is retried: exceeded quota', 'failed'],
  ['PatchFailed', 'patches[1], path a: it takes too long (timeout)', 'failed'],
  ['PatchFailed', 'patches[1], path a: this expression is quarantined until later', 'failed'],
  ['Contested', 'Field manager "kubectl" keeps overwriting the host copy.', 'contested'],
  // These are decided here, where they are not the case.
  ['PatchFailed', 'patches[1], path a: value.a is not a function (runtime)'],
  ['NamespaceNotFound', 'The host namespace "host" does not exist: create it.'],
  ['Terminating', 'The copy "host/web" on the host is being deleted.'],
  ['NameConflict', 'The host name already belongs to the copy of another object.'],
  ['NotManaged', 'The host already has Endpoints of this name.'],
  ['NamespaceNotMapped', 'The namespace has no entry.'],
  ['ReferenceNotFound', 'Secret "shop/a" exists on neither side.'],
  ['ReferenceNotAllowed', 'It names a kind that the configuration does not allow.'],
  // These do not keep an object from being written.
  ['DuplicateEndpoints', 'Two objects give one Service the same address.'],
  ['TooManyAddresses', 'A subset has more than 1000 addresses.'],
  ['LocalTrafficPolicy', 'The Service keeps traffic on the node.'],
  ['NoEffect', 'The host has made no EndpointSlice of the copy.'],
];

describe('a warning is the cause of a difference only if it can be, and if nothing has succeeded since', () => {
  const eventAt = (reason: string, note: string, lastMs: number) => ({ ...event(reason, note), lastMs });
  const differing = (successMs: number, events: StatusFacts['events'], more: Partial<Case> = {}) =>
    statusIn({
      config: configWith({ own: '  patches: {onError: object}' }),
      virtual: [web()],
      after: editedHost({ labels: {}, managedFields: [writtenAt(successMs)] }),
      expected: ['pending', '', ''],
      ...more,
      facts: { events, ...more.facts },
    });

  test.for(WARNINGS)('%s: %s', async ([reason, note, cause]) => {
    const current = await differing(NOW - 120_000, [eventAt(reason, note, NOW - 60_000)]);
    expect(current?.state).toBe(cause ?? 'pending');
    expect(current?.reason).toBe(cause === undefined ? 'differs' : reason);
    if (cause === 'contested') return; // the daemon writes while it is contested, too
    const over = await differing(NOW - 30_000, [eventAt(reason, note, NOW - 60_000)]);
    expect(over).toMatchObject({ state: 'pending', reason: 'differs' });
    const old = await differing(0, [eventAt(reason, note, NOW - 660_000)]);
    expect(old).toMatchObject({ state: 'pending', reason: 'differs' });
  });

  test.each(['Synced', 'TakenOver'])('an Event %s tells of a success whose copy is gone', async (success) => {
    const lost = (events: StatusFacts['events']) =>
      differing(0, events, { after: (clusters) => ({ ...clusters, host: [] }) });
    const [failure, since] = [
      eventAt('SyncError', 'Writing to the host failed: exceeded quota', NOW - 60_000),
      { ...eventAt(success, 'Synced.', NOW - 30_000), type: 'Normal' },
    ];
    expect(await lost([failure])).toMatchObject({ state: 'failed', reason: 'SyncError' });
    expect(await lost([since, failure])).toMatchObject({ state: 'pending', reason: 'no host copy' });
  });

  test('a write to the virtual object is a success, too', async () => {
    const events = [eventAt('SyncError', 'Writing to the virtual cluster failed: timeout', NOW - 60_000)];
    const virtual = object('Endpoints', 'shop/web', {}, { managedFields: [writtenAt(NOW - 30_000)] });
    expect(await differing(0, events)).toMatchObject({ state: 'failed' });
    expect(await differing(0, events, { virtual: [virtual] })).toMatchObject({ state: 'pending' });
  });

  test.each(['NamespaceNotFound', 'Terminating'])(
    '%s counts where the namespace may not be read',
    async (reason) => {
      const events = [eventAt(reason, 'The host namespace "host" takes no copy.', NOW - 60_000)];
      const facts = { unreadNamespaces: new Set(['host']) };
      expect(await differing(0, events, { facts })).toMatchObject({ state: 'failed', reason });
    },
  );
});

describe('why', () => {
  test.each(Object.entries({ ...CASES, ...KIND_CASES }))('%s', async (_, testCase) => {
    const [state, reason, sentence] = testCase.expected;
    const status = await statusIn(testCase);
    expect(status).toMatchObject({ state, reason });
    const text = status?.sentence ?? '';
    // The end of a pending sentence depends on which replica is the leader.
    const isSaid = typeof sentence === 'string' ? text.startsWith(sentence) : sentence.test(text);
    expect({ text, isSaid }).toEqual({ text, isSaid: true });
  });

  test('an object that exists on neither side has no status', async () => {
    expect(await statusIn({ expected: ['skipped', '', ''] })).toBeUndefined();
  });
});
