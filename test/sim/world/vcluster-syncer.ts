/**
 * vCluster's own syncers of Endpoints and EndpointSlices, as its source (0.37) describes them, without patches: contents go to the host, and
 * every annotation and label goes to the side that did not change, found by comparison with the states that it saw last, in memory. It creates
 * and deletes on both sides: an object whose copy is gone, and a copy whose object is gone.
 */

import { jsonEquals } from '../../../src/base/json.ts';
import {
  keyOf,
  objectKey,
  parseKey,
  type KubeObject,
  type ObjectKey,
  type StringMap,
} from '../../../src/kube/object.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import type { Side } from '../history/operations.ts';
import { hasSelector, SERVICE_NAME } from './host-controllers.ts';
import { hostPlaceOf, VCLUSTER, type NameSettings } from './names.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import type { SimCluster } from './sim-cluster.ts';

export const VCLUSTER_MANAGER = 'vcluster';

/** Between an event and the reconcile, and between two requests. */
const REACTION_MS = 15;
const CONFLICT_MS = 1000;
const FORGET_MS = 60_000;
const PREFIX = 'vcluster.loft.sh/';
const MARKER = `${PREFIX}managed-by`;
const CONTROLLED_BY = `${PREFIX}controlled-by`;
const IDENTITY = ['object-name', 'object-namespace', 'object-uid', 'object-kind', 'object-host-name'];
/** Annotations that never cross. */
const EXCLUDED: readonly string[] = [
  ...[...IDENTITY, 'object-host-namespace', 'managed-annotations', 'managed-labels'].map(
    (name) => PREFIX + name,
  ),
  'control-plane.alpha.kubernetes.io/leader',
];
const KINDS: Readonly<Record<BesidePlural, string>> = {
  endpoints: '/v1, Kind=Endpoints',
  endpointslices: 'discovery.k8s.io/v1, Kind=EndpointSlice',
};

export type BesidePlural = 'endpoints' | 'endpointslices';
/** Names are those of single-namespace mode. */
const NAMES: NameSettings = { isMapped: false, naming: 'short' };

export class VclusterSyncer {
  readonly #clusters: Readonly<Record<Side, SimCluster>>;
  readonly #clock: VirtualClock;
  #plurals: readonly BesidePlural[] = [];
  /** Grows with every start, so that what an earlier process was about to do is dropped. */
  #life = 0;
  readonly #active = new Map<string, 'again' | 'once'>();
  readonly #seen: Readonly<Record<Side, Map<string, KubeObject>>> = { virtual: new Map(), host: new Map() };

  constructor(clusters: Readonly<Record<Side, SimCluster>>, clock: VirtualClock) {
    this.#clusters = clusters;
    this.#clock = clock;
    for (const side of ['virtual', 'host'] as const)
      clusters[side].subscribe(({ plural, object }) => {
        if (plural === 'services' && side === 'virtual') this.#enqueue('endpoints', objectKey(object));
        if (!isBeside(plural)) return;
        const key = side === 'virtual' ? objectKey(object) : originalOf(plural, object);
        if (key !== undefined) this.#enqueue(plural, key);
      });
  }

  /** A start with these syncs on; no kind ends it. What an earlier process has seen is forgotten. */
  restart(plurals: readonly BesidePlural[]): void {
    this.#life += 1;
    this.#plurals = plurals;
    this.#active.clear();
    this.#seen.virtual.clear();
    this.#seen.host.clear();
    if (plurals.length > 0) this.#forgetGone();
    for (const plural of plurals) {
      for (const object of this.#clusters.virtual.list(plural)) this.#enqueue(plural, objectKey(object));
      for (const object of this.#clusters.host.list(plural)) {
        const key = originalOf(plural, object);
        if (key !== undefined) this.#enqueue(plural, key);
      }
    }
  }

  /** Each minute. Until then, an object that is created again without a copy counts as one whose copy was deleted. */
  #forgetGone(): void {
    this.#later(FORGET_MS, () => {
      for (const side of ['virtual', 'host'] as const)
        for (const [id, object] of this.#seen[side]) {
          const plural = id.startsWith('endpoints ') ? 'endpoints' : 'endpointslices';
          const key = side === 'virtual' ? objectKey(object) : originalOf(plural, object);
          if (key === undefined) continue;
          const isThere =
            this.#clusters.virtual.get(plural, key) ??
            this.#clusters.host.get(plural, keyOf(hostPlaceOf(parseKey(key), NAMES)));
          if (isThere === undefined) this.#seen[side].delete(id);
        }
      this.#forgetGone();
    });
  }

  #enqueue(plural: BesidePlural, key: ObjectKey, delayMs = REACTION_MS): void {
    if (!this.#plurals.includes(plural)) return;
    const id = `${plural} ${key}`;
    if (this.#active.has(id)) {
      this.#active.set(id, 'again');
      return;
    }
    this.#active.set(id, 'once');
    this.#later(delayMs, () => {
      this.#active.set(id, 'once');
      this.#reconcile(plural, key, (requeueMs) => {
        const isAgain = this.#active.get(id) === 'again';
        this.#active.delete(id);
        if (isAgain || requeueMs !== undefined) this.#enqueue(plural, key, requeueMs);
      });
    });
  }

  #later(delayMs: number, action: () => void): void {
    const life = this.#life;
    this.#clock.schedule(delayMs, () => {
      if (life === this.#life) action();
    });
  }

  #reconcile(plural: BesidePlural, key: ObjectKey, done: (requeueMs?: number) => void): void {
    const { virtual, host } = this.#clusters;
    const [object, hostKey] = [virtual.get(plural, key), keyOf(hostPlaceOf(parseKey(key), NAMES))];
    const copy = host.get(plural, hostKey);
    if (!this.#isEligible(plural, key, { object, copy })) return done();
    const isForeign = copy !== undefined && originalOf(plural, copy) !== key;
    if (isForeign || isControlledByAnother(object) || isControlledByAnother(copy)) return done();
    const ids = { virtual: `${plural} ${key}`, host: `${plural} ${hostKey}` };
    if (object === undefined) {
      if (copy !== undefined && copy.metadata.annotations?.[`${PREFIX}skip-backsync`] !== 'true')
        this.#delete('host', plural, copy, ids);
      return done();
    }
    if (copy === undefined) {
      if (this.#seen.host.has(ids.host)) this.#delete('virtual', plural, object, ids);
      else this.#create(plural, object, ids);
      return done();
    }
    const uid = copy.metadata.annotations?.[`${PREFIX}object-uid`];
    if (uid !== undefined && uid !== object.metadata.uid) {
      this.#delete('host', plural, copy, ids);
      return done();
    }
    this.#sync(plural, { object, copy, ids }, done);
  }

  /** What it does before it compares the two sides. */
  #isEligible(plural: BesidePlural, key: ObjectKey, { object, copy }: Found): boolean {
    const service = object && this.#clusters.virtual.get('services', serviceKeyOf(plural, object));
    if (plural === 'endpointslices' && object === undefined) {
      if (copy !== undefined) attempt(() => remove(this.#clusters.host, plural, copy));
      return false;
    }
    if (plural === 'endpoints' && this.#clusters.virtual.get('services', key) === undefined) return false;
    if (object !== undefined && service === undefined) return false;
    const isNamed = copy?.metadata.annotations?.[`${PREFIX}object-name`] !== undefined;
    const isSelecting = hasSelector(service ?? this.#clusters.virtual.get('services', key));
    // The host's controller is to create its own again, or may not keep what it created.
    if (copy !== undefined && isSelecting === isNamed)
      attempt(() => remove(this.#clusters.host, plural, copy));
    return !isSelecting && (copy === undefined || isNamed);
  }

  #create(plural: BesidePlural, object: KubeObject, ids: Ids): void {
    const { name, namespace = '', annotations = {}, labels = {} } = object.metadata;
    const place = hostPlaceOf({ namespace, name }, NAMES);
    const managed = Object.keys(annotations).filter((key) => !EXCLUDED.includes(key));
    const copied = Object.fromEntries(managed.map((key) => [key, annotations[key] ?? '']));
    const metadata = {
      ...place,
      annotations: {
        ...copied,
        ...identityOf(plural, object, place),
        ...(managed.length > 0 ? { [`${PREFIX}managed-annotations`]: managed.toSorted().join('\n') } : {}),
      },
      labels: {
        ...labels,
        [MARKER]: VCLUSTER,
        [`${PREFIX}namespace`]: namespace,
        ...(plural === 'endpointslices'
          ? { [SERVICE_NAME]: `${labels[SERVICE_NAME]}-x-${namespace}-x-${VCLUSTER}` }
          : {}),
      },
    };
    attempt(() => {
      const stored = this.#clusters.host.create(
        plural,
        { ...object, metadata },
        { manager: VCLUSTER_MANAGER },
      );
      this.#seen.host.set(ids.host, stored);
      this.#seen.virtual.set(ids.virtual, object);
    });
  }

  /** Two requests, the first to the virtual cluster; each is refused where the object has changed since. */
  #sync(
    plural: BesidePlural,
    { object, copy, ids }: { readonly object: KubeObject; readonly copy: KubeObject; readonly ids: Ids },
    done: (requeueMs?: number) => void,
  ): void {
    const virtualOld = this.#seen.virtual.get(ids.virtual) ?? withoutLabels(object);
    const hostOld = this.#seen.host.get(ids.host) ?? copy;
    this.#seen.virtual.set(ids.virtual, virtualOld);
    this.#seen.host.set(ids.host, hostOld);
    const old = { virtual: virtualOld.metadata, host: hostOld.metadata };
    const now = { virtual: object.metadata, host: copy.metadata };
    const annotations = bidirectional(
      [old.virtual.annotations, now.virtual.annotations],
      [old.host.annotations, now.host.annotations],
      (key) => !EXCLUDED.includes(key),
    );
    const labels = bidirectional(
      [old.virtual.labels, now.virtual.labels],
      [old.host.labels, now.host.labels],
      (key) => !key.startsWith(PREFIX) && key !== 'release',
    );
    const content =
      plural === 'endpoints' ? { subsets: object['subsets'] } : { endpoints: object['endpoints'] };
    const place = { namespace: now.host.namespace ?? '', name: now.host.name };
    const identity = identityOf(plural, object, place);
    const wanted = {
      virtual: {
        ...object,
        metadata: { ...now.virtual, annotations: annotations.virtual, labels: labels.virtual },
      },
      host: {
        ...copy,
        ...content,
        metadata: { ...now.host, annotations: { ...annotations.host, ...identity }, labels: labels.host },
      },
    };
    const store = (side: Side, then: () => void): void =>
      this.#later(1, () => {
        try {
          const before = side === 'virtual' ? object : copy;
          const stored = isSame(wanted[side], before)
            ? before
            : this.#clusters[side].update(plural, wanted[side], { manager: VCLUSTER_MANAGER });
          this.#seen[side].set(ids[side], stored);
          then();
        } catch (error) {
          if (!(error instanceof StatusError)) throw error;
          done(CONFLICT_MS);
        }
      });
    store('virtual', () => store('host', done));
  }

  #delete(side: Side, plural: BesidePlural, object: KubeObject, ids: Ids): void {
    attempt(() => remove(this.#clusters[side], plural, object));
    this.#seen.virtual.delete(ids.virtual);
    this.#seen.host.delete(ids.host);
  }
}

interface Found {
  readonly object: KubeObject | undefined;
  readonly copy: KubeObject | undefined;
}

/** As it was seen last, and now. */
type Versions = readonly [StringMap | undefined, StringMap | undefined];

type Ids = Readonly<Record<Side, string>>;

/** The side that changed since it was seen last wins, the virtual one first; what changed there is carried over key by key. */
function bidirectional(
  [virtualOld = {}, virtual = {}]: Versions,
  [hostOld = {}, host = {}]: Versions,
  crosses: (key: string) => boolean,
): Readonly<Record<Side, StringMap>> {
  if (!jsonEquals(virtualOld, virtual))
    return { virtual, host: carried([virtualOld, virtual], host, crosses) };
  return { virtual: carried([hostOld, host], virtual, crosses), host };
}

function carried(
  [before, after]: readonly [StringMap, StringMap],
  target: StringMap,
  crosses: (key: string) => boolean,
): StringMap {
  const result = { ...target };
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[key] === after[key] || !crosses(key)) continue;
    const value = after[key];
    if (value === undefined) delete result[key];
    else result[key] = value;
  }
  return result;
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  const plain = ({ metadata: { annotations = {}, labels = {} }, subsets, endpoints }: KubeObject) =>
    ({ annotations, labels, subsets: subsets ?? null, endpoints: endpoints ?? null }) as never; // JSON
  return jsonEquals(plain(a), plain(b));
}

function withoutLabels(object: KubeObject): KubeObject {
  const metadata = { ...object.metadata };
  delete metadata.labels;
  return { ...object, metadata };
}

function identityOf(
  plural: BesidePlural,
  { metadata: { name, namespace = '', uid = '' } }: KubeObject,
  host: { readonly namespace: string; readonly name: string },
): StringMap {
  const values = [name, namespace, uid, KINDS[plural], host.name];
  const identity = IDENTITY.map((member, at): [string, string] => [PREFIX + member, values[at] ?? '']);
  return { ...Object.fromEntries(identity), [`${PREFIX}object-host-namespace`]: host.namespace };
}

/** The key of the object that a host object says it is the copy of; undefined: it is no copy of this kind. */
function originalOf(plural: BesidePlural, { metadata }: KubeObject): ObjectKey | undefined {
  const { name, namespace = '', annotations = {}, labels = {} } = metadata;
  const stated = (member: string): string | undefined => annotations[PREFIX + member];
  const original = { namespace: stated('object-namespace') ?? '', name: stated('object-name') ?? '' };
  const isManaged =
    labels[MARKER] === VCLUSTER &&
    original.name !== '' &&
    (stated('object-kind') ?? KINDS[plural]) === KINDS[plural] &&
    (stated('object-host-name') ?? name) === name &&
    (stated('object-host-namespace') ?? namespace) === namespace &&
    keyOf(hostPlaceOf(original, NAMES)) === keyOf({ namespace, name });
  return isManaged ? keyOf(original) : undefined;
}

function serviceKeyOf(plural: BesidePlural, { metadata }: KubeObject): ObjectKey {
  const { namespace = '', name, labels = {} } = metadata;
  return keyOf({ namespace, name: plural === 'endpoints' ? name : (labels[SERVICE_NAME] ?? '') });
}

function isControlledByAnother(object: KubeObject | undefined): boolean {
  const { labels = {}, annotations = {} } = object?.metadata ?? {};
  return labels[CONTROLLED_BY] !== undefined || annotations[CONTROLLED_BY] !== undefined;
}

function isBeside(plural: string): plural is BesidePlural {
  return Object.hasOwn(KINDS, plural);
}

function remove(
  cluster: SimCluster,
  plural: string,
  { metadata: { name, namespace = '' } }: KubeObject,
): void {
  cluster.delete(plural, { name, namespace }, { manager: VCLUSTER_MANAGER });
}

/** What is refused is tried again with the next event. */
function attempt(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}
