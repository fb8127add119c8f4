/** One row for each rule: the state of both sides, and the decision. */

import { endpointsKind } from '../../../src/syncer/kinds/endpoints.ts';
import type { SyncedKind } from '../../../src/syncer/kinds/kind.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseKey, type KubeObject } from '../../../src/kube/object.ts';
import { decide, type Decision, type Observation } from '../../../src/syncer/reconcile/decide.ts';

const TARGET = { namespace: 'host', name: 'web-x-default-x-vc' };

function virtualEndpoints(metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name: 'web', namespace: 'default', uid: 'u1', ...metadata } };
}

function service(selector: Record<string, string> | null): KubeObject {
  return { metadata: { name: 'web', namespace: 'default' }, spec: { selector } };
}

function hostObject(metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { ...TARGET, uid: 'h1', resourceVersion: '7', ...metadata } };
}

const OURS = { kind: 'ours', virtual: { namespace: 'default', name: 'web' }, uid: 'u1' } as const;

function seen(parts: Partial<Observation>): Observation {
  return {
    key: 'default/web',
    virtual: virtualEndpoints(),
    service: undefined,
    target: TARGET,
    unmapped: undefined,
    host: undefined,
    ownership: undefined,
    strays: [],
    claims: [],
    hasForeignService: false,
    isMoved: false,
    isUnserved: false,
    wasCopied: false,
    isKnownCopy: false,
    ...parts,
  };
}

const foreign = { kind: 'foreign', object: hostObject() } as const;
const unmarked = { kind: 'unmarked', object: hostObject() } as const;
const byLabel = madeBy({ labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } });
const byManager = madeBy({ managedFields: [{ manager: 'kube-controller-manager', operation: 'Update' }] });
const byK3s = madeBy({ managedFields: [{ manager: 'k3s', operation: 'Update' }] });
const byOther = madeBy({ managedFields: [{ manager: 'kubectl', operation: 'Update' }] });
const byOptedOut = madeBy({
  ...byLabel.object.metadata,
  annotations: { 'vcluster.loft.sh/controlled-by': 'other' },
});
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/hold'] };
const RECORDED = { annotations: { 'endpoint-syncer/last-synced': '{}' } };
const controlledLabel = { labels: { 'vcluster.loft.sh/controlled-by': 'other' } };

function madeBy(metadata: Partial<KubeObject['metadata']>) {
  return { kind: 'unmarked', object: hostObject(metadata) } as const;
}

interface Row {
  readonly rule: string;
  readonly sees: Partial<Observation>;
  readonly requireService?: boolean;
  readonly kind?: SyncedKind;
  readonly does: string;
}

const emptyServices = createServiceKind({
  hasSyncedEndpoints: () => false,
  neverCopied: () => undefined,
  allow: [],
});

const ROWS: readonly Row[] = [
  { rule: 'nothing on the host: create', sees: {}, does: 'create' },
  { rule: 'selector-less Service: create', sees: { service: service(null) }, does: 'create' },
  { rule: 'an empty selector selects nothing', sees: { service: service({}) }, does: 'create' },
  {
    rule: 'Service with a selector',
    sees: { service: service({ app: 'x' }) },
    does: 'ignore: service has a selector',
  },
  {
    rule: 'Service got a selector: our copy goes, so that the host can rebuild',
    sees: { service: service({ app: 'x' }), host: hostObject(), ownership: OURS },
    does: 'delete: service has a selector',
  },
  {
    rule: 'Service with a selector never touches what is not ours',
    sees: { service: service({ app: 'x' }), host: hostObject(), ownership: unmarked },
    does: 'ignore: service has a selector',
  },
  { rule: 'requireService without a Service', sees: {}, requireService: true, does: 'ignore: no service' },
  {
    rule: 'requireService: the copy goes with the Service',
    sees: { host: hostObject(), ownership: OURS },
    requireService: true,
    does: 'delete: no service',
  },
  { rule: 'our copy: update', sees: { host: hostObject(), ownership: OURS }, does: 'update' },
  {
    rule: 're-created virtual object: rewrite in place',
    sees: { host: hostObject(), ownership: { ...OURS, uid: 'u0' } },
    does: 'rewrite: virtual object was re-created',
  },
  {
    rule: 'what the host controller left behind is taken over: proof by label',
    sees: { host: hostObject(), ownership: byLabel, service: service(null) },
    does: 'takeOver',
  },
  {
    rule: 'what the host controller left behind is taken over: proof by managedFields',
    sees: { host: hostObject(), ownership: byManager, service: service(null) },
    does: 'takeOver',
  },
  {
    rule: 'what the host controller left behind is taken over: proof by managedFields of k3s',
    sees: { host: hostObject(), ownership: byK3s, service: service(null) },
    does: 'takeOver',
  },
  {
    rule: 'what the host controller left behind is not taken over from another syncer',
    sees: { host: hostObject(), ownership: byOptedOut, service: service(null) },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'another manager is no proof',
    sees: { host: hostObject(), ownership: byOther, service: service(null) },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'without proof an object is foreign, Service or not',
    sees: { host: hostObject(), ownership: unmarked, service: service(null) },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'without the virtual Service nothing is taken over',
    sees: { host: hostObject(), ownership: byLabel },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'what the host controller created is never deleted with the virtual object',
    sees: { virtual: undefined, host: hostObject(), ownership: byLabel, service: service(null) },
    does: 'ignore: gone on both sides',
  },
  {
    rule: 'unmarked without a Service is foreign',
    sees: { host: hostObject(), ownership: unmarked },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'foreign is never touched, Service or not',
    sees: { host: hostObject(), ownership: foreign, service: service(null) },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'a copy that this process wrote stays ours when another client strips its bookkeeping',
    sees: { host: hostObject(), ownership: unmarked, isKnownCopy: true },
    does: 'update',
  },
  {
    rule: 'virtual object gone, copy ours: delete',
    sees: { virtual: undefined, host: hostObject(), ownership: OURS },
    does: 'delete: virtual object is gone',
  },
  {
    rule: 'virtual object gone, host object foreign: leave',
    sees: { virtual: undefined, host: hostObject(), ownership: foreign },
    does: 'ignore: gone on both sides',
  },
  {
    rule: 'skip-backsync keeps the copy',
    sees: {
      virtual: undefined,
      host: hostObject({ labels: { 'vcluster.loft.sh/skip-backsync': 'true' } }),
      ownership: OURS,
    },
    does: 'ignore: skip-backsync',
  },
  {
    rule: 'a deleting object with finalizers stays in sync',
    sees: {
      virtual: virtualEndpoints({ deletionTimestamp: '2026-01-01T00:00:00Z' }),
      host: hostObject(),
      ownership: OURS,
    },
    does: 'update',
  },
  {
    rule: 'our copy is being deleted: what flows one way is written, and it is created again',
    sees: { host: hostObject(DELETED), ownership: OURS },
    does: 'terminating: recreate',
  },
  {
    rule: 'our copy is being deleted, of a virtual object that was re-created',
    sees: { host: hostObject(DELETED), ownership: { ...OURS, uid: 'u0' } },
    does: 'terminating: recreate',
  },
  {
    rule: 'a known copy is being deleted whose bookkeeping another client strips',
    sees: { host: hostObject(DELETED), ownership: unmarked, isKnownCopy: true },
    does: 'terminating: recreate',
  },
  {
    rule: 'our copy is being deleted, and the virtual object is gone or not synced any more',
    sees: { virtual: undefined, host: hostObject(DELETED), ownership: OURS },
    does: 'terminating: nothing',
  },
  {
    rule: 'our copy is being deleted, and the Service has a selector now',
    sees: { service: service({ app: 'x' }), host: hostObject(DELETED), ownership: OURS },
    does: 'terminating: nothing',
  },
  {
    rule: 'our copy that gets the traffic of others is being deleted',
    sees: { host: hostObject(DELETED), ownership: OURS, hasForeignService: true },
    does: 'terminating: nothing',
  },
  {
    rule: 'what the host controller left behind is being deleted: not taken over',
    sees: { host: hostObject(DELETED), ownership: byLabel, service: service(null) },
    does: 'terminating: create',
  },
  {
    rule: 'a foreign object is being deleted, which frees its name',
    sees: { host: hostObject(DELETED), ownership: foreign },
    does: 'terminating: create',
  },
  {
    rule: 'the copy of a sibling is being deleted, which frees its name',
    sees: { host: hostObject(DELETED), ownership: { ...OURS, virtual: { namespace: 'x', name: 'other' } } },
    does: 'terminating: create',
  },
  {
    rule: 'a foreign object that is being deleted, without a virtual object',
    sees: { virtual: undefined, host: hostObject(DELETED), ownership: foreign },
    does: 'ignore: gone on both sides',
  },
  {
    rule: 'a copy that is being deleted stays with another controller',
    sees: { host: hostObject({ ...DELETED, ...controlledLabel }), ownership: OURS },
    does: 'ignore: controlled by another',
  },
  {
    rule: 'a rival has the name, whatever becomes of the host object',
    sees: {
      claims: [claim('default/web', '2026-02-01'), claim('x/other', '2026-01-01')],
      host: hostObject(DELETED),
      ownership: foreign,
    },
    does: 'refuse: NameConflict',
  },
  {
    rule: 'controlled-by label on the virtual object',
    sees: { virtual: virtualEndpoints(controlledLabel) },
    does: 'ignore: controlled by another',
  },
  {
    rule: 'controlled-by label on the host copy, virtual gone',
    sees: { virtual: undefined, host: hostObject(controlledLabel), ownership: OURS },
    does: 'ignore: controlled by another',
  },
  {
    rule: 'controlled-by annotation',
    sees: { virtual: virtualEndpoints({ annotations: { 'vcluster.loft.sh/controlled-by': 'vcluster' } }) },
    does: 'ignore: controlled by another',
  },
  {
    rule: 'controlled-by annotation that names this syncer',
    sees: { virtual: virtualEndpoints({ annotations: { 'vcluster.loft.sh/controlled-by': 'endpoints' } }) },
    does: 'create',
  },
  {
    rule: 'the API server has Endpoints of its own',
    sees: { key: 'default/kubernetes' },
    does: 'ignore: never synced',
  },
  {
    rule: 'our copy gets the traffic of a host Service of others',
    sees: { host: hostObject(), ownership: OURS, hasForeignService: true },
    does: 'delete: its host Service is not the copy of its Service',
  },
  {
    rule: 'that copy goes although the tenant opts the object out',
    sees: {
      virtual: virtualEndpoints(controlledLabel),
      host: hostObject(RECORDED),
      ownership: OURS,
      hasForeignService: true,
    },
    does: 'delete: its host Service is not the copy of its Service',
  },
  {
    rule: 'an opted-out copy of another syncer stays',
    sees: {
      virtual: virtualEndpoints(controlledLabel),
      host: hostObject(),
      ownership: OURS,
      hasForeignService: true,
    },
    does: 'ignore: controlled by another',
  },
  {
    rule: 'that copy goes with its virtual object, skip-backsync or not',
    sees: {
      virtual: undefined,
      host: hostObject({ labels: { 'vcluster.loft.sh/skip-backsync': 'true' } }),
      ownership: OURS,
      hasForeignService: true,
    },
    does: 'delete: its host Service is not the copy of its Service',
  },
  {
    rule: 'what others made for their Service stays',
    sees: { host: hostObject(), ownership: foreign, hasForeignService: true },
    does: 'refuse: NotManaged',
  },
  {
    rule: 'a Service with nothing behind it, never copied',
    kind: emptyServices,
    sees: {},
    does: 'ignore: no synced endpoints',
  },
  {
    rule: 'a Service with nothing behind it whose copy is gone',
    kind: emptyServices,
    sees: { wasCopied: true },
    does: 'create',
  },
  {
    rule: 'a Service with nothing behind it whose copy is gone, and another object in its place',
    kind: emptyServices,
    sees: { wasCopied: true, host: hostObject(), ownership: foreign },
    does: 'ignore: no synced endpoints',
  },
  { rule: 'unmapped namespace', sees: { target: undefined }, does: 'refuse: NamespaceNotMapped' },
  {
    rule: 'a name in an unmapped namespace: the copy stays as it is',
    sees: {
      unmapped: { namespace: 'other', path: 'spec.externalName' },
      host: hostObject(),
      ownership: OURS,
    },
    does: 'refuse: NamespaceNotMapped',
  },
  {
    rule: 'the older of two claims has the name',
    sees: { claims: [claim('default/web', '2026-02-01'), claim('x/other', '2026-01-01')] },
    does: 'refuse: NameConflict',
  },
  {
    rule: 'the holder of the host copy keeps the name, younger or not',
    sees: {
      claims: [claim('default/web', '2026-02-01'), claim('x/other', '2026-01-01')],
      host: hostObject(),
      ownership: OURS,
    },
    does: 'update',
  },
  {
    rule: 'the holder that may not have the name is judged by its own copy, which goes then',
    sees: {
      claims: [{ ...claim('default/web', '2026-01-01'), isEligible: false }, claim('x/other', '2026-02-01')],
      host: hostObject(),
      ownership: OURS,
    },
    does: 'update',
  },
  {
    rule: 'a claim that is not synced takes no name',
    sees: {
      claims: [claim('default/web', '2026-02-01'), { ...claim('x/other', '2026-01-01'), isEligible: false }],
    },
    does: 'create',
  },
  {
    rule: 'an older claim without a Service does not keep what a controller left behind',
    sees: {
      claims: [claim('default/web', '2026-02-01'), { ...claim('x/other', '2026-01-01'), hasService: false }],
      host: hostObject(),
      ownership: byLabel,
      service: service(null),
    },
    does: 'takeOver',
  },
  {
    rule: 'the copy of a sibling that is going',
    sees: { host: hostObject(), ownership: { ...OURS, virtual: { namespace: 'x', name: 'other' } } },
    does: 'refuse: NameConflict',
  },
];

function claim(key: string, createdAt: string) {
  return { key, createdAt, isEligible: true, keepsCopy: false, hasService: true };
}

describe('decide', () => {
  test.each(ROWS)('$rule → $does', ({ sees, requireService = false, kind = endpointsKind, does }) => {
    const decision = decide(seen(sees), { requireService, kind, isSyncedByVcluster: false });
    const reason = 'reason' in decision ? decision.reason : 'next' in decision ? decision.next : undefined;
    expect([decision.kind, reason].filter((part) => part !== undefined).join(': ')).toBe(does);
  });

  test('of two objects with one host name, never each waits for the other', () => {
    const [a, b] = ['default/web', 'x/other'] as const;
    const claims = fc
      .tuple(fc.boolean(), fc.boolean(), fc.boolean())
      .map(([isEligible, keepsCopy, hasService]) => ({
        ...claim(a, '2026-01-01'),
        isEligible,
        keepsCopy,
        hasService,
      }));
    const holders = fc.constantFrom(a, b, 'x/gone', undefined);
    fc.assert(
      fc.property(claims, claims, holders, fc.boolean(), (ofA, ofB, holder, isByController) => {
        const host = holder === undefined && !isByController ? undefined : hostObject();
        const ownership = holder === undefined ? byLabel : { ...OURS, virtual: parseKey(holder) };
        const both = [ofA, { ...ofB, key: b, createdAt: '2026-02-01' }];
        const decisions = [a, b].map((key) => {
          const sees = { key, virtual: { metadata: { ...parseKey(key), uid: 'u1' } }, claims: both, host };
          const options = { requireService: false, kind: endpointsKind, isSyncedByVcluster: false };
          return decide(seen({ ...sees, ...(host && { ownership }) }), options);
        });
        const isWaiting = (one: Decision): boolean => one.kind === 'refuse' && one.reason === 'NameConflict';
        expect(decisions.every(isWaiting)).toBe(holder === 'x/gone');
      }),
    );
  });

  test('the note about a foreign object has its name and the next step', () => {
    const decision = decide(seen({ host: hostObject(), ownership: foreign }), {
      requireService: false,
      kind: endpointsKind,
      isSyncedByVcluster: false,
    });
    const note = 'note' in decision ? decision.note : '';
    expect(note).toContain('host/web-x-default-x-vc');
    expect(note).toMatch(/delete or rename/i);
  });
});

/** It deletes the virtual object of a copy that another client deletes. */
describe('while vCluster syncs the kind too', () => {
  const decided = (
    { sees, requireService = false, kind = endpointsKind }: Row,
    isSyncedByVcluster: boolean,
  ) => decide(seen(sees), { requireService, kind, isSyncedByVcluster });
  const deleting = ROWS.filter((row) => decided(row, false).kind === 'delete');
  const traffic = 'its host Service is not the copy of its Service';

  test.each(deleting.filter(({ sees, does }) => isThere(sees) && !does.endsWith(traffic)))(
    'no copy of an object that exists is deleted: $rule',
    (row) => {
      expect(decided(row, true)).toEqual({ kind: 'ignore', reason: 'synced by vCluster' });
    },
  );

  test.each(deleting.filter(({ sees, does }) => !isThere(sees) || does.endsWith(traffic)))(
    'the copy of an object that is gone is, and one that gets the traffic of others: $rule',
    (row) => {
      expect(decided(row, true)).toEqual(decided(row, false));
    },
  );

  test('a copy that gets the traffic of another Service of its namespace is moved in place', () => {
    const moved = seen({ host: hostObject(), ownership: OURS, hasForeignService: true, isMoved: true });
    const options = { requireService: false, kind: endpointsKind };
    expect(decide(moved, { ...options, isSyncedByVcluster: true })).toEqual({ kind: 'update' });
    expect(decide(moved, { ...options, isSyncedByVcluster: false }).kind).toBe('delete');
  });

  test('other decisions are the same', () => {
    const others = ROWS.filter((row) => !deleting.includes(row));
    expect(others.map((row) => decided(row, true))).toEqual(others.map((row) => decided(row, false)));
  });
});

function isThere(sees: Partial<Observation>): boolean {
  return seen(sees).virtual !== undefined;
}

test('a copy of a Service that this program never wrote is left to vCluster, whose values may not be known', () => {
  const options = { requireService: false, isSyncedByVcluster: false };
  const copy = (metadata: Partial<KubeObject['metadata']>) =>
    seen({ virtual: service({ app: 'x' }), host: hostObject(metadata), ownership: OURS });
  const kind = emptyServices;
  expect(decide(copy({}), { ...options, kind })).toEqual({ kind: 'ignore', reason: 'selects Pods' });
  expect(decide(copy(RECORDED), { ...options, kind })).toEqual({ kind: 'delete', reason: 'selects Pods' });
});
