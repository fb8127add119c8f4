/** What of a plan is about some of its objects. */

import { keyOf, type KubeObject } from '../../kube/object.ts';
import { outcomeOf } from '../reconcile/controller.ts';
import { namespaceAdvice } from '../reconcile/environment.ts';
import { endingImport } from './object-status.ts';
import type { Change, ObjectPlan } from './rehearsal.ts';
import type { WorldPlan } from './snapshot.ts';

/** Their host copies and the imports that they name, as far as they are being deleted. */
export function endsAbout(
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

/** Of a copy that fails because its host namespace takes none, as in the daemon's Event. */
export function closedNamespaceNote(error: unknown, { snapshot: { config } }: WorldPlan): string | undefined {
  const { warning } = outcomeOf(error, 0, namespaceAdvice(config));
  const isOfNamespace = warning?.reason === 'NamespaceNotFound' || warning?.reason === 'Terminating';
  return isOfNamespace ? warning.note : undefined;
}

/** Changes of these objects, of their copies, and of the objects that they reference. */
export function changesAbout(objects: readonly ObjectPlan[], plan: WorldPlan): readonly Change[] {
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
