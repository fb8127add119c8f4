/** The difference between the clusters of a plan and a sync of them, wholly or of some objects. Pure. */

import { keyOf, type KubeObject, type ObjectKey, type Resource } from '../../kube/object.ts';
import { outcomeOf } from '../reconcile/controller.ts';
import { namespaceAdvice } from '../reconcile/environment.ts';
import { endingImport } from './import-status.ts';
import type { Change, ObjectPlan, ReferencePlan } from './rehearsal.ts';
import type { WorldPlan } from './snapshot.ts';

interface Differences {
  /** Of the objects that are chosen, those that others reference included. */
  readonly keys: readonly ObjectKey[];
  /** Why the copies of objects that are gone stay. */
  readonly objection: string | undefined;
  /** `note`: of a copy that fails because its host namespace takes none, as in the daemon's Event. */
  readonly failed: readonly {
    readonly resource: Resource;
    readonly key: ObjectKey;
    readonly error: unknown;
    readonly note: string | undefined;
  }[];
  /** What is being deleted has no difference of its own, and is replaced when it is gone. */
  readonly ending: readonly { readonly what: string; readonly object: KubeObject }[];
  /** Also of the objects that they reference. */
  readonly changes: readonly Change[];
}

/** `isChosen`: undefined for everything. */
export function differencesIn(
  plan: WorldPlan,
  isChosen: ((key: ObjectKey, resource: Resource) => boolean) | undefined,
): Differences {
  const objects = plan.objects.filter(({ key, kind }) => isChosen?.(key, kind.resource) ?? true);
  const chosen = plan.references.filter(
    ({ seen: { virtual, kind } }) => isChosen?.(keyOf(virtual), kind.virtual) ?? true,
  );
  const imports = [...new Set([...chosen, ...importsNamedIn(objects, plan)])];
  return {
    keys: [...objects.map(({ key }) => key), ...chosen.map(({ seen }) => keyOf(seen.virtual))],
    objection: plan.objection,
    failed: objects.flatMap(({ kind: { resource }, key, error }) =>
      error === undefined ? [] : [{ resource, key, error, note: closedNamespaceNote(error, plan) }],
    ),
    ending: endsAbout(objects, imports),
    changes: isChosen === undefined ? plan.changes : changesAbout([...objects, ...imports], plan),
  };
}

/** The host copies and the imports, as far as they are being deleted. */
function endsAbout(
  objects: readonly ObjectPlan[],
  imports: readonly ReferencePlan[],
): readonly { readonly what: string; readonly object: KubeObject }[] {
  const copies = objects.flatMap(({ kind, decision, seen }) =>
    decision.kind === 'terminating' && seen.host !== undefined
      ? [{ what: `the host copy of ${kind.resource.kind}`, object: seen.host }]
      : [],
  );
  const ofImports = imports.flatMap(({ seen }) => {
    const object = endingImport(seen);
    return object === undefined ? [] : [{ what: `the import of ${seen.kind.virtual.kind}`, object }];
  });
  return [...copies, ...ofImports];
}

function closedNamespaceNote(error: unknown, { snapshot: { config } }: WorldPlan): string | undefined {
  const { warning } = outcomeOf(error, 0, namespaceAdvice(config));
  const isOfNamespace = warning?.reason === 'NamespaceNotFound' || warning?.reason === 'Terminating';
  return isOfNamespace ? warning.note : undefined;
}

function changesAbout(
  plans: readonly Pick<ObjectPlan, 'changes'>[],
  { changes }: WorldPlan,
): readonly Change[] {
  const about = new Set(plans.flatMap((one) => one.changes));
  return changes.filter((change) => about.has(change));
}

/** The objects that these reference. */
function importsNamedIn(objects: readonly ObjectPlan[], { references }: WorldPlan): readonly ReferencePlan[] {
  const named = new Set(
    objects.flatMap((object) => object.references.map((one) => `${one.kind} ${keyOf(one)}`)),
  );
  return references.filter(
    ({ seen: { kind, virtual }, isReferenced }) =>
      isReferenced && named.has(`${kind.virtual.kind} ${keyOf(virtual)}`),
  );
}
