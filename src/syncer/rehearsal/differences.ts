/** The difference between the clusters of a plan and a sync of them, wholly or of some objects. Pure. */

import { keyOf, type KubeObject, type ObjectKey, type Resource } from '../../kube/object.ts';
import { outcomeOf } from '../reconcile/controller.ts';
import { namespaceAdvice } from '../reconcile/environment.ts';
import { endingImport } from './import-status.ts';
import type { Change, ObjectPlan } from './rehearsal.ts';
import type { WorldPlan } from './snapshot.ts';

interface Differences {
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
  return {
    keys: objects.map(({ key }) => key),
    objection: plan.objection,
    failed: objects.flatMap(({ kind: { resource }, key, error }) =>
      error === undefined ? [] : [{ resource, key, error, note: closedNamespaceNote(error, plan) }],
    ),
    ending: endsAbout(objects, plan),
    changes: isChosen === undefined ? plan.changes : changesAbout(objects, plan),
  };
}

/** Their host copies and the imports that they name, as far as they are being deleted. */
function endsAbout(
  objects: readonly ObjectPlan[],
  { references }: WorldPlan,
): readonly { readonly what: string; readonly object: KubeObject }[] {
  const copies = objects.flatMap(({ kind, decision, seen }) =>
    decision.kind === 'terminating' && seen.host !== undefined
      ? [{ what: `the host copy of ${kind.resource.kind}`, object: seen.host }]
      : [],
  );
  const named = namesIn(objects);
  const imports = references.flatMap(({ seen }) => {
    const ending = endingImport(seen);
    const { kind } = seen.kind.virtual;
    return ending !== undefined && named.has(`${kind} ${keyOf(seen.virtual)}`)
      ? [{ what: `the import of ${kind}`, object: ending }]
      : [];
  });
  return [...copies, ...imports];
}

function closedNamespaceNote(error: unknown, { snapshot: { config } }: WorldPlan): string | undefined {
  const { warning } = outcomeOf(error, 0, namespaceAdvice(config));
  const isOfNamespace = warning?.reason === 'NamespaceNotFound' || warning?.reason === 'Terminating';
  return isOfNamespace ? warning.note : undefined;
}

/** Changes of these objects, of their copies, and of the objects that they reference. */
function changesAbout(objects: readonly ObjectPlan[], plan: WorldPlan): readonly Change[] {
  const named = namesIn(objects);
  const references = plan.references.filter(
    ({ seen: { kind, virtual }, isReferenced }) =>
      isReferenced && named.has(`${kind.virtual.kind} ${keyOf(virtual)}`),
  );
  const about = new Set([...objects, ...references].flatMap(({ changes }) => changes));
  return plan.changes.filter((change) => about.has(change));
}

function namesIn(objects: readonly ObjectPlan[]): ReadonlySet<string> {
  return new Set(objects.flatMap(({ references }) => references.map((one) => `${one.kind} ${keyOf(one)}`)));
}
