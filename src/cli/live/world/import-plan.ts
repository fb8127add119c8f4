/** What a sync would do with referenced objects: the importer's decisions and copies, from a snapshot. */

import {
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../../../kube/object.ts';
import type { ReferenceLookup } from '../../../syncer/patch/types.ts';
import { SKIP_BACKSYNC } from '../../../syncer/reconcile/decide/decide.ts';
import { needsWrite } from '../../../syncer/reconcile/write/diff.ts';
import {
  decideReference,
  hostKeyOf,
  surplusCopies,
  type ReferenceDecision,
  type ReferenceObservation,
} from '../../../syncer/references/decide/decide-reference.ts';
import {
  forgeHostImport,
  forgeVirtualImport,
  isImport,
} from '../../../syncer/references/import/import-forge.ts';
import {
  copiedFrom,
  observeReference,
  virtualNamed,
  type KindView,
} from '../../../syncer/references/decide/observe-reference.ts';
import { type ReferencedKind } from '../../../syncer/references/kinds/referenced-kind.ts';
import { referenceIdOf } from '../../../syncer/references/index/reference-id.ts';
import {
  refusalOfContent,
  refusalRules,
  type RefusalRules,
} from '../../../syncer/references/decide/refusals.ts';
import { kindIdOf, type KindId } from '../../../syncer/translate/merge/recorded-kinds.ts';
import type { NameTranslator } from '../../../syncer/translate/types.ts';
import { createTranslators } from '../../../syncer/translation.ts';
import type { Change, ObjectPlan } from './plan.ts';
import type { Snapshot } from './snapshot.ts';

export interface ImportPlan {
  readonly kind: ReferencedKind;
  /** The referenced object's name in the virtual cluster. */
  readonly virtual: NamespacedName;
  readonly seen: ReferenceObservation;
  readonly isReferenced: boolean;
  readonly decision: ReferenceDecision;
  readonly changes: readonly Change[];
}

export class ImportPlanner {
  readonly #snapshot: Snapshot;
  readonly #views: ReadonlyMap<KindId, SnapshotView>;
  readonly #names: NameTranslator;
  readonly #rules: RefusalRules;

  constructor(snapshot: Snapshot) {
    const { config, referenced } = snapshot;
    const rules = refusalRules(config);
    this.#snapshot = snapshot;
    this.#names = createTranslators(config).names;
    this.#views = new Map(referenced.map((one) => [one.kind.id, viewOf(one, this.#names, rules)]));
    this.#rules = rules;
  }

  /** For the patches: the name of a referenced object in the other cluster. */
  readonly lookup: ReferenceLookup = (reference, direction) => {
    const view = this.#views.get(kindIdOf(reference));
    if (view === undefined) return undefined;
    if (direction === 'toHost')
      return decideReference(observeReference(view, reference, this.#names), this.#rules).name;
    return virtualNamed(view, reference, this.#names);
  };

  /** The objects that the planned objects reference, and imports that may no longer be referenced. */
  plan(plans: readonly ObjectPlan[]): ImportPlan[] {
    const wanted = new Map<string, { kind: KindId; name: NamespacedName; isReferenced: boolean }>();
    const add = (kind: KindId, { namespace, name }: NamespacedName, isReferenced: boolean): void => {
      const id = referenceIdOf(kind, { namespace, name });
      if (isReferenced || !wanted.has(id)) wanted.set(id, { kind, name: { namespace, name }, isReferenced });
    };
    for (const { references } of plans)
      for (const reference of references) add(kindIdOf(reference), reference, true);
    for (const view of this.#views.values())
      for (const name of importsIn(view, this.#names)) add(view.kind.id, name, false);
    return [...wanted]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, { kind, name, isReferenced }]) => {
        const view = this.#views.get(kind);
        return view === undefined ? [] : [this.#planOne(view, name, isReferenced, plans)];
      });
  }

  #planOne(
    view: SnapshotView,
    virtual: NamespacedName,
    isReferenced: boolean,
    plans: readonly ObjectPlan[],
  ): ImportPlan {
    const seen = observeReference(view, virtual, this.#names);
    const decision: ReferenceDecision = isReferenced
      ? decideReference(seen, this.#rules)
      : { name: undefined, action: seen.ours.length > 0 || seen.imported ? 'none' : 'paused' };
    const isKept = (object: KubeObject): boolean => !isReferenced && mayBeNamed(object, plans);
    const why = isReferenced ? 'no longer imported' : 'no longer referenced';
    const changes: Change[] = surplusCopies(seen, decision)
      .filter((copy) => !isSkipped(copy) && !isKept(copy))
      .map((before) => ({
        cluster: 'host',
        resource: view.kind.host,
        before,
        after: undefined,
        reason: why,
      }));
    const { imported } = seen;
    const isImportKept = decision.action === 'to-virtual' || decision.action === 'paused';
    if (imported !== undefined && !isImportKept && !isKept(imported)) {
      const resource = view.kind.virtual;
      changes.push({ cluster: 'virtual', resource, before: imported, after: undefined, reason: why });
    }
    const written = this.#import(seen, decision);
    if (written !== undefined) changes.push(written);
    return { kind: view.kind, virtual, seen, isReferenced, decision, changes };
  }

  #import(seen: ReferenceObservation, { action }: ReferenceDecision): Change | undefined {
    const { kind, virtual, object, source, target, imported, ours } = seen;
    const { config, owner } = this.#snapshot;
    if (action === 'to-host' && object !== undefined && target !== undefined) {
      const before = ours.find((copy) => hostKeyOf(copy) === keyOf(target));
      const forge = { ...createTranslators(config), owner };
      const after = forgeHostImport(object, kind, { target, host: before }, forge);
      return written({ cluster: 'host', resource: kind.host, before, after, reason: 'is referenced' });
    }
    if (action === 'to-virtual' && source !== undefined) {
      const after = forgeVirtualImport(source, kind, { virtual, current: imported }, config.name);
      return written({
        cluster: 'virtual',
        resource: kind.virtual,
        before: imported,
        after,
        reason: 'is referenced',
      });
    }
    return undefined;
  }
}

function written(change: Change & { readonly after: KubeObject }): Change | undefined {
  return change.before === undefined || needsWrite(change.after, change.before) ? change : undefined;
}

interface SnapshotView extends KindView {
  readonly copies: readonly KubeObject[];
  readonly originals: readonly KubeObject[];
}

function viewOf(
  { kind, virtual, host }: Snapshot['referenced'][number],
  names: NameTranslator,
  rules: RefusalRules,
): SnapshotView {
  const byKey = (objects: readonly KubeObject[]): Map<ObjectKey, KubeObject> =>
    new Map(objects.map((object) => [objectKey(object), object]));
  const [virtuals, hosts] = [byKey(virtual), byKey(host)];
  const copies = Map.groupBy(host, (object) => {
    const from = copiedFrom(object, kind, names);
    return from && keyOf(from);
  });
  return {
    kind,
    copies: host,
    originals: virtual,
    virtuals: () => virtual,
    virtual: (key) => virtuals.get(key),
    host: (key) => hosts.get(key),
    copiesOf: (key) => copies.get(key) ?? [],
    refusal: (object) => refusalOfContent(object, kind.host, rules),
    isKnownImport: () => false,
  };
}

/** Names of what was imported, in either direction. */
function importsIn({ kind, copies, originals }: SnapshotView, names: NameTranslator): NamespacedName[] {
  const fromVirtual = copies.flatMap((copy) => copiedFrom(copy, kind, names) ?? []);
  const fromHost = originals
    .filter((object) => isImport(object, names.vcluster))
    .map(({ metadata: { namespace = '', name } }) => ({ namespace, name }));
  return [...fromVirtual, ...fromHost];
}

function isSkipped({ metadata: { labels, annotations } }: KubeObject): boolean {
  return labels?.[SKIP_BACKSYNC] === 'true' || annotations?.[SKIP_BACKSYNC] === 'true';
}

/** The references of an object that cannot be translated, or that another controller manages, are those of its copy. */
function mayBeNamed({ metadata: { name } }: KubeObject, plans: readonly ObjectPlan[]): boolean {
  return plans.some(({ key, seen: { host, ownership }, decision, error }) => {
    const isUnknown = error !== undefined || decision.kind === 'ignore';
    const isOwnCopy = ownership?.kind === 'ours' && keyOf(ownership.virtual) === key;
    return isUnknown && isOwnCopy && JSON.stringify(host).includes(name);
  });
}
