/** What a sync would do with each object of a snapshot: the engine's decisions and copies, repeated until nothing changes. */

import {
  asJson,
  keyOf,
  objectKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../../kube/object.ts';
import type { ClusterName, Lister } from '../../../kube/types.ts';
import { hasSelector, type SyncedKind } from '../../../syncer/kinds/kind.ts';
import type { PatchPipeline, TranslatedReference } from '../../../syncer/patch/types.ts';
import {
  createCopyForge,
  RefusedCopy,
  type CopyForge,
  type Pair,
} from '../../../syncer/reconcile/copy-forge.ts';
import {
  decide,
  isOverOwnCopy,
  type DecideOptions,
  type Decision,
  type Observation,
} from '../../../syncer/reconcile/decide/decide.ts';
import { needsWrite } from '../../../syncer/reconcile/write/diff.ts';
import {
  createObserver,
  foreignServices,
  hostIndexes,
  virtualIndexes,
} from '../../../syncer/reconcile/decide/observer.ts';
import { namedVirtual } from '../../../syncer/translate/metadata/ownership.ts';
import { createTranslators } from '../../../syncer/translation.ts';
import { mergePatch } from '../../../apiserver/patch/merge-patch.ts';
import type { JsonObject } from '../../../base/json.ts';
import { objectsOf, type Snapshot } from './snapshot.ts';
import { staticLister } from '../../objects/static-lister.ts';

/** One object on one side, before and after; undefined: it does not exist. */
export interface Change {
  readonly cluster: ClusterName;
  readonly resource: Resource;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
  readonly reason: string;
}

export interface ObjectPlan {
  readonly key: ObjectKey;
  readonly resource: Resource;
  readonly kind: SyncedKind;
  readonly seen: Observation;
  readonly decision: Decision;
  /** Empty: both sides are in sync, or no write is allowed. */
  readonly changes: readonly Change[];
  /** Why the copy cannot be built, usually a `PatchError`. */
  readonly error: unknown;
  readonly references: readonly TranslatedReference[];
}

/** A pair is stable after two writes; more rounds than this are a defect, which the property tests would show. */
const ROUNDS_MAX = 5;

/** Plans the objects of one kind. */
export class Planner {
  readonly snapshot: Snapshot;
  readonly kind: SyncedKind;
  readonly #decide: DecideOptions;
  readonly #virtual: Lister;
  readonly #host: Lister;
  readonly #hostServices: Lister;
  readonly #observe: (key: ObjectKey) => Observation;
  readonly #forge: CopyForge;

  constructor(kind: SyncedKind, snapshot: Snapshot, pipeline: PatchPipeline) {
    this.kind = kind;
    this.snapshot = snapshot;
    const { config, services, owner } = snapshot;
    const { names, labels } = createTranslators(config);
    const { virtual, host } = objectsOf(snapshot, kind.resource);
    this.#decide = { requireService: config.requireService, kind };
    this.#virtual = staticLister(kind.resource, virtual, virtualIndexes(names, kind));
    this.#host = staticLister(kind.resource, host, hostIndexes(names, kind));
    this.#hostServices = staticLister(SERVICES, services.host);
    const isShared = config.sync.namespaces.kind !== 'single';
    const foreignService = foreignServices(kind, names, isShared ? this.#hostServices : undefined);
    this.#observe = createObserver({
      virtual: this.#virtual,
      services: staticLister(SERVICES, services.virtual),
      host: this.#host,
      translator: names,
      pairs: new Map(),
      decide: this.#decide,
      foreignService,
      kind,
    });
    this.#forge = createCopyForge({ kind, names, labels, owner, pipeline, foreignService });
  }

  /** Every virtual object, and every object of which the host has a copy. */
  keys(): ObjectKey[] {
    const { names } = createTranslators(this.snapshot.config);
    const copied = [...this.#host.list()].flatMap((copy) => {
      const virtual = namedVirtual(copy, this.kind.resource, names);
      return virtual === undefined ? [] : [keyOf(virtual)];
    });
    return [...new Set([...[...this.#virtual.list()].map(objectKey), ...copied])].toSorted();
  }

  async plan(key: ObjectKey): Promise<ObjectPlan> {
    const seen = this.#observe(key);
    const decision = decide(seen, this.#decide);
    const { kind } = this;
    const base = { key, resource: kind.resource, kind, seen, decision };
    const strays = seen.strays.map((stray) => this.#deletion(stray, 'belongs elsewhere now'));
    try {
      const { changes, references } = await this.#act(seen, decision);
      return { ...base, changes: [...strays, ...changes], error: undefined, references };
    } catch (error) {
      if (error instanceof RefusedCopy) {
        const deleted =
          seen.host !== undefined && isOverOwnCopy(decision)
            ? [this.#deletion(seen.host, error.refusal.reason)]
            : [];
        const changes = [...strays, ...deleted];
        return { ...base, decision: error.refusal, changes, error: undefined, references: [] };
      }
      return { ...base, changes: strays, error, references: [] };
    }
  }

  async #act(seen: Observation, decision: Decision): Promise<Pick<ObjectPlan, 'changes' | 'references'>> {
    const { virtual, target, host } = seen;
    if (decision.kind === 'delete' && host !== undefined) {
      return {
        changes: [this.#deletion(host, decision.reason), ...this.#clearedStatus(seen, host)],
        references: [],
      };
    }
    if (virtual === undefined || target === undefined) return { changes: [], references: [] };
    const pair = { virtual, target, host };
    switch (decision.kind) {
      case 'ignore':
      case 'refuse':
      case 'delete':
        return { changes: [], references: [] };
      case 'create':
        return this.#fresh(pair, 'no host copy');
      case 'rewrite':
        return this.#fresh(pair, decision.reason);
      case 'takeOver':
        return this.#isBusy(target) ? { changes: [], references: [] } : this.#fresh(pair, 'taken over');
      case 'update':
        return this.#merge(pair);
    }
  }

  /** The host's endpoints controller writes these Endpoints while the host Service selects Pods. */
  #isBusy(target: NamespacedName): boolean {
    const service = this.#hostServices.get(keyOf(target));
    return service !== undefined && hasSelector(service);
  }

  async #fresh(pair: Pair, reason: string): Promise<Pick<ObjectPlan, 'changes' | 'references'>> {
    const { host: after, references } = await this.#forge.fresh(pair);
    return {
      changes: [{ cluster: 'host', resource: this.kind.resource, before: pair.host, after, reason }],
      references,
    };
  }

  /** Both sides as they are after the last of the writes that a sync would do one after the other. */
  async #merge(pair: Pair): Promise<Pick<ObjectPlan, 'changes' | 'references'>> {
    let { virtual, host } = pair;
    let references: readonly TranslatedReference[] = [];
    for (let round = 0; round < ROUNDS_MAX && host !== undefined; round++) {
      const merged = await this.#forge.merged({ ...pair, virtual, host });
      ({ references } = merged);
      if (merged.virtualPatch === undefined && merged.host === undefined) break;
      if (merged.virtualPatch !== undefined) ({ virtual } = merged);
      host = merged.host ?? host;
    }
    const { resource, content, statusPatch } = this.kind;
    const before = pair.virtual;
    const status = host && statusPatch(virtual, host);
    const changes: Change[] = [];
    if (needsWrite(virtual, before, content) || status !== undefined) {
      const after = status === undefined ? virtual : withStatus(virtual, status);
      changes.push({ cluster: 'virtual', resource, before, after, reason: 'changed on the host' });
    }
    if (host !== undefined && pair.host !== undefined && needsWrite(host, pair.host, content)) {
      const reason = 'differs from the virtual object';
      changes.push({ cluster: 'host', resource, before: pair.host, after: host, reason });
    }
    return { changes, references };
  }

  #deletion(before: KubeObject, reason: string): Change {
    return { cluster: 'host', resource: this.kind.resource, before, after: undefined, reason };
  }

  /** A status that came from the copy is cleared when the copy is deleted. */
  #clearedStatus({ virtual }: Observation, host: KubeObject): Change[] {
    const { resource, statusPatch } = this.kind;
    if (virtual === undefined || statusPatch(virtual, host) !== undefined) return [];
    const patch = statusPatch(virtual, undefined);
    if (patch === undefined) return [];
    const after = withStatus(virtual, patch);
    return [{ cluster: 'virtual', resource, before: virtual, after, reason: 'the host copy is deleted' }];
  }
}

/** As a merge patch leaves it: null removes a member. */
function withStatus(object: KubeObject, patch: JsonObject): KubeObject {
  return mergePatch(asJson(object), patch) as unknown as KubeObject; // metadata is not in the patch
}
