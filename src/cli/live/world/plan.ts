/** What a sync would do with each object of a snapshot: the engine's decisions and copies, carried on until nothing changes any more. */

import {
  ENDPOINTS,
  keyOf,
  objectKey,
  SERVICES,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
  type Resource,
} from '../../../kube/object.ts';
import type { ClusterName, Lister } from '../../../kube/types.ts';
import { endpointsKind } from '../../../syncer/kinds/endpoints.ts';
import { hasSelector } from '../../../syncer/kinds/kind.ts';
import { createPatchPipeline, type PipelineOptions } from '../../../syncer/patch/pipeline.ts';
import type { ReferenceLookup, TranslatedReference } from '../../../syncer/patch/types.ts';
import { createCopyForge, type CopyForge, type Pair } from '../../../syncer/reconcile/copy-forge.ts';
import {
  decide,
  type DecideOptions,
  type Decision,
  type Observation,
} from '../../../syncer/reconcile/decide/decide.ts';
import { needsWrite } from '../../../syncer/reconcile/write/diff.ts';
import { createObserver, hostIndexes, virtualIndexes } from '../../../syncer/reconcile/decide/observer.ts';
import { namedVirtual } from '../../../syncer/translate/metadata/ownership.ts';
import { createTranslators } from '../../../syncer/translation.ts';
import type { OfflineSync } from '../../offline/offline-sync.ts';
import type { Snapshot } from './snapshot.ts';
import { staticLister } from '../../objects/static-lister.ts';

/** One object on one side, before and after; undefined: it is not there. */
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
  readonly seen: Observation;
  readonly decision: Decision;
  /** Empty: both sides are as they should be, or nothing may be done. */
  readonly changes: readonly Change[];
  /** What keeps the copy from being built, a `PatchError` as a rule. */
  readonly error: unknown;
  readonly references: readonly TranslatedReference[];
}

/** A pair comes to rest after two writes; more rounds than this are a defect, which the property tests would show. */
const ROUNDS_MAX = 5;

export class Planner {
  readonly snapshot: Snapshot;
  readonly pipelineOptions: PipelineOptions;
  readonly #decide: DecideOptions;
  readonly #virtual: Lister;
  readonly #host: Lister;
  readonly #hostServices: Lister;
  readonly #observe: (key: ObjectKey) => Observation;
  readonly #forge: CopyForge;

  constructor(snapshot: Snapshot, sync: OfflineSync, lookup: ReferenceLookup) {
    this.snapshot = snapshot;
    const { config, endpoints, services, owner } = snapshot;
    const { names, labels } = createTranslators(config);
    const kind = endpointsKind;
    this.#decide = { requireService: config.requireService, kind };
    this.#virtual = staticLister(ENDPOINTS, endpoints.virtual, virtualIndexes(names, kind));
    this.#host = staticLister(ENDPOINTS, endpoints.host, hostIndexes(names, kind));
    this.#hostServices = staticLister(SERVICES, snapshot.hostServices);
    this.#observe = createObserver({
      virtual: this.#virtual,
      services: staticLister(SERVICES, services),
      host: this.#host,
      translator: names,
      pairs: new Map(),
      decide: this.#decide,
      kind,
    });
    this.pipelineOptions = sync.pipelineOptionsFor(kind, lookup);
    this.#forge = createCopyForge({
      kind,
      names,
      labels,
      owner,
      pipeline: createPatchPipeline(this.pipelineOptions),
    });
  }

  /** Every virtual object, and every object of which the host has a copy. */
  keys(): ObjectKey[] {
    const { names } = createTranslators(this.snapshot.config);
    const copied = [...this.#host.list()].flatMap((copy) => {
      const virtual = namedVirtual(copy, ENDPOINTS, names);
      return virtual === undefined ? [] : [keyOf(virtual)];
    });
    return [...new Set([...[...this.#virtual.list()].map(objectKey), ...copied])].toSorted();
  }

  async plan(key: ObjectKey): Promise<ObjectPlan> {
    const seen = this.#observe(key);
    const decision = decide(seen, this.#decide);
    const base = { key, resource: ENDPOINTS, seen, decision };
    const strays = seen.strays.map((stray) => deletion(stray, 'belongs elsewhere now'));
    try {
      const { changes, references } = await this.#act(seen, decision);
      return { ...base, changes: [...strays, ...changes], error: undefined, references };
    } catch (error) {
      return { ...base, changes: strays, error, references: [] };
    }
  }

  async #act(seen: Observation, decision: Decision): Promise<Pick<ObjectPlan, 'changes' | 'references'>> {
    const { virtual, target, host } = seen;
    if (decision.kind === 'delete' && host !== undefined) {
      return { changes: [deletion(host, decision.reason)], references: [] };
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

  /** The host's endpoints controller is at work while the host Service selects Pods. */
  #isBusy(target: NamespacedName): boolean {
    const service = this.#hostServices.get(keyOf(target));
    return service !== undefined && hasSelector(service);
  }

  async #fresh(pair: Pair, reason: string): Promise<Pick<ObjectPlan, 'changes' | 'references'>> {
    const { host: after, references } = await this.#forge.fresh(pair);
    return {
      changes: [{ cluster: 'host', resource: ENDPOINTS, before: pair.host, after, reason }],
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
    const changes: Change[] = [];
    if (needsWrite(virtual, pair.virtual, endpointsKind.content)) {
      const reason = 'changed on the host';
      changes.push({ cluster: 'virtual', resource: ENDPOINTS, before: pair.virtual, after: virtual, reason });
    }
    if (host !== undefined && pair.host !== undefined && needsWrite(host, pair.host, endpointsKind.content)) {
      const reason = 'differs from the virtual object';
      changes.push({ cluster: 'host', resource: ENDPOINTS, before: pair.host, after: host, reason });
    }
    return { changes, references };
  }
}

function deletion(before: KubeObject, reason: string): Change {
  return { cluster: 'host', resource: ENDPOINTS, before, after: undefined, reason };
}
