/** One row for each rule: the state of both sides, the name that is written, and the import. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  decideReference,
  surplusCopies,
  type ReferenceObservation,
} from '../../../src/syncer/references/decide-reference.ts';
import { refusalRules } from '../../../src/syncer/references/refusals.ts';
import type { ReferencedKind } from '../../../src/syncer/references/referenced-kind.ts';
import { SECRET_KIND } from './gadget-kind.ts';

const RULES = refusalRules({
  name: 'vc',
  virtual: { kubeconfig: '', context: '', secret: 'the-kubeconfig', server: '', adopt: false },
  references: { naming: 'short', refuseSecrets: [], onlyLabelled: '' },
});
const TARGET = { namespace: 'host', name: 'vshort' };

function virtual(parts: Partial<KubeObject> = {}): KubeObject {
  return { metadata: { name: 'tls', namespace: 'default', uid: 'u1' }, ...parts };
}

function source(name = 'tls', metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name, namespace: 'host', uid: 's1', ...metadata } };
}

function copyAt(name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name, namespace: 'host', uid: `c-${name}`, ...metadata } };
}

function seen(parts: Partial<ReferenceObservation>): ReferenceObservation {
  return {
    kind: SECRET_KIND,
    virtual: { namespace: 'default', name: 'tls' },
    object: undefined,
    malformed: undefined,
    imported: undefined,
    othersCopy: undefined,
    ours: [],
    target: TARGET,
    holder: undefined,
    isTargetTaken: false,
    source: undefined,
    isSourceWatched: true,
    sourceRefusal: undefined,
    ...parts,
  };
}

const others = { namespace: 'host', name: 'tls-x-default-x-vc' };
const CONTROLLED = { 'vcluster.loft.sh/controlled-by': 'other' };

interface Row {
  readonly rule: string;
  readonly sees: Partial<ReferenceObservation>;
  /** `name: action[ problem]` */
  readonly does: string;
}

const ROWS: readonly Row[] = [
  { rule: 'nowhere', sees: {}, does: 'vshort: none ReferenceNotFound' },
  {
    rule: 'nowhere, in a namespace that is not mapped',
    sees: { target: undefined },
    does: 'undefined: none ReferenceNotFound',
  },
  { rule: 'in the virtual cluster', sees: { object: virtual() }, does: 'vshort: to-host' },
  {
    rule: 'in the virtual cluster, our copy there',
    sees: { object: virtual(), ours: [copyAt('vshort')] },
    does: 'vshort: to-host',
  },
  {
    rule: 'syncing not configured',
    sees: { object: virtual(), kind: { ...SECRET_KIND, isSynced: false } },
    does: 'vshort: none',
  },
  {
    rule: 'another syncer copies the whole kind',
    sees: { object: virtual(), kind: { ...SECRET_KIND, isImportable: false } },
    does: 'vshort: none',
  },
  {
    rule: 'on both sides the virtual one counts',
    sees: { object: virtual(), source: source() },
    does: 'vshort: to-host',
  },
  {
    rule: 'the copy of another syncer goes before everything',
    sees: { othersCopy: others, object: virtual(), source: source() },
    does: 'tls-x-default-x-vc: none',
  },
  {
    rule: 'the copy of another syncer, its original not seen (yet)',
    sees: { othersCopy: others },
    does: 'tls-x-default-x-vc: none',
  },
  {
    rule: 'the target is taken',
    sees: { object: virtual(), isTargetTaken: true },
    does: 'vshort: none NotManaged',
  },
  {
    rule: 'a taken target does not matter where nothing is imported',
    sees: { object: virtual(), isTargetTaken: true, kind: { ...SECRET_KIND, isSynced: false } },
    does: 'vshort: none',
  },
  {
    rule: 'another virtual object has the host name',
    sees: { object: virtual(), holder: { namespace: 'other', name: 's' } },
    does: 'undefined: none',
  },
  {
    rule: 'another virtual object has the host name of one that does not exist',
    sees: { holder: { namespace: 'other', name: 's' } },
    does: 'undefined: none',
  },
  {
    rule: 'the name on the host is not that of another virtual object',
    sees: { source: source(), holder: { namespace: 'other', name: 's' } },
    does: 'tls: to-virtual',
  },
  {
    rule: 'the virtual object opts out',
    sees: { object: virtual({ metadata: { name: 'tls', labels: CONTROLLED } }) },
    does: 'vshort: paused',
  },
  {
    rule: 'the copy opts out',
    sees: { object: virtual(), ours: [copyAt('vshort', { labels: CONTROLLED })] },
    does: 'vshort: paused',
  },
  {
    rule: 'a virtual service-account token',
    sees: { object: virtual({ type: 'kubernetes.io/service-account-token' }) },
    does: 'vshort: none ReferenceNotAllowed',
  },
  { rule: 'only on the host: the name stays', sees: { source: source() }, does: 'tls: to-virtual' },
  {
    rule: 'only on the host, imported already',
    sees: { source: source(), imported: virtual() },
    does: 'tls: to-virtual',
  },
  {
    rule: 'imported, but gone from the host',
    sees: { imported: virtual() },
    does: 'vshort: none ReferenceNotFound',
  },
  {
    rule: 'only on the host, of a kind that another syncer copies',
    sees: { source: source(), kind: { ...SECRET_KIND, isImportable: false } },
    does: 'tls: none',
  },
  {
    rule: 'host: marked by another virtual cluster',
    sees: { source: source('tls', { labels: { 'vcluster.loft.sh/managed-by': 'b' } }) },
    does: 'vshort: none ReferenceNotAllowed',
  },
  {
    rule: 'host: certificates of an application',
    sees: { source: source('shop-certs') },
    does: 'shop-certs: to-virtual',
  },
  {
    rule: 'host: a look into it has shown keys',
    sees: { source: source(), sourceRefusal: 'keys' },
    does: 'vshort: none ReferenceNotAllowed',
  },
];

describe('what the note about a missing object promises', () => {
  const noted = (kind: Partial<ReferencedKind>, isSourceWatched: boolean): string =>
    decideReference(seen({ kind: { ...SECRET_KIND, ...kind }, isSourceWatched }), RULES).problem?.note ?? '';
  const nowhere =
    'does not exist in the virtual cluster, and on the host it was not found or is not allowed to be imported';
  const notVirtual = 'does not exist in the virtual cluster';
  const off =
    'an object of the virtual cluster is not imported, because its kind is not enabled under sync.toHost';
  const other =
    'objects of this kind are not imported, the name is valid as soon as their own syncer has copied the object';

  test.each([
    { kind: {}, isWatched: true, says: [nowhere, 'the object is imported as soon as it exists'] },
    {
      kind: {},
      isWatched: false,
      says: [notVirtual, 'the object is imported as soon as it exists in the virtual cluster'],
    },
    {
      kind: { isSynced: false },
      isWatched: true,
      says: [nowhere, `the object is imported as soon as it exists on the host; ${off}`],
    },
    { kind: { isSynced: false }, isWatched: false, says: [notVirtual, off] },
    { kind: { isImportable: false }, isWatched: false, says: [notVirtual, other] },
  ])('$kind, host namespace watched: $isWatched', ({ kind, isWatched, says: [where, then] }) => {
    expect(noted(kind, isWatched)).toBe(
      `Secret "default/tls" is referenced, but ${where}. The translated name is written; ${then}.`,
    );
  });
});

describe('a referenced object', () => {
  test.for(ROWS)('$rule', ({ sees, does }) => {
    const { name, action, problem } = decideReference(seen(sees), RULES);
    const text = `${name?.name}: ${action}${problem === undefined ? '' : ` ${problem.reason}`}`;
    expect(text).toBe(does);
  });
});

describe('copies that are not needed', () => {
  const names = (parts: Partial<ReferenceObservation>): string[] => {
    const observation = seen(parts);
    const decision = decideReference(observation, RULES);
    return surplusCopies(observation, decision).map(({ metadata }) => metadata.name);
  };

  test('are all copies if nothing is imported into the host', () => {
    expect(names({ ours: [copyAt('vshort'), copyAt('old')] })).toEqual(['vshort', 'old']);
    expect(names({ ours: [copyAt('vshort')], source: source() })).toEqual(['vshort']);
    expect(names({ ours: [copyAt('vshort')], othersCopy: others, object: virtual() })).toEqual(['vshort']);
  });

  test('are none of an object that the API server returns malformed', () => {
    expect(names({ malformed: 'it has no metadata', ours: [copyAt('vshort')] })).toEqual([]);
  });

  test('are those in another namespace than the expected one', () => {
    expect(names({ object: virtual(), ours: [copyAt('vshort'), copyAt('old')] })).toEqual(['old']);
  });

  test('are none of an object that is opted out', () => {
    expect(names({ ours: [copyAt('vshort', { labels: CONTROLLED })] })).toEqual([]);
    const object = virtual({ metadata: { name: 'tls', annotations: CONTROLLED } });
    expect(names({ object, ours: [copyAt('vshort')] })).toEqual([]);
  });
});
