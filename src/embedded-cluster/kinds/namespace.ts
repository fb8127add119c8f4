/** Namespaces. `cluster-admission.ts` deletes their content. */

import { type JsonObject, listField, objectField, text } from '../../base/json.ts';
import { NAMESPACES, metadataOf } from '../../kube/object.ts';
import {
  defineResource,
  type ResourceDefinition,
  type Subresource,
  type Verb,
} from '../../apiserver/objects/resource-definition.ts';
import { specFinalizerErrors } from '../../apiserver/metadata.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { labelProblem } from '../../kube/names.ts';

const VERBS: readonly Verb[] = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

const FINALIZER = 'kubernetes';

/** Changes the finalizers in the spec. */
const FINALIZE: Subresource = {
  name: 'finalize',
  verbs: ['update'],
  merge: (previous, next) => ({
    ...previous,
    spec: {
      ...objectField(previous, 'spec'),
      finalizers: listField(objectField(next, 'spec'), 'finalizers'),
    },
  }),
};

export function namespaces(types: TypeTable): ResourceDefinition {
  const phase = (object: JsonObject): string => text(objectField(object, 'status'), 'phase');
  return defineResource({
    ...NAMESPACES,
    singular: 'namespace',
    shortNames: ['ns'],
    verbs: VERBS,
    schema: types.get('Namespace'),
    checkName: labelProblem,
    hasStatus: true,
    subresources: [FINALIZE],
    selectableFields: { 'status.phase': phase },
    columns: [NAME_COLUMN, textColumn('Status', 'Active or Terminating.', phase), AGE_COLUMN],
    applyDefaults: (object) => {
      const metadata = metadataOf(object);
      metadata['labels'] = {
        ...objectField(metadata, 'labels'),
        'kubernetes.io/metadata.name': text(metadata, 'name'),
      };
    },
    prepare: (next, previous) => {
      if (previous) {
        if (objectField(next, 'spec')['finalizers'] === undefined && !isTerminating(next)) {
          next['spec'] = objectField(previous, 'spec');
        }
        return;
      }
      const finalizers = listField(objectField(next, 'spec'), 'finalizers');
      const isMissing = !finalizers.includes(FINALIZER);
      next['spec'] = { finalizers: [...finalizers, ...(isMissing ? [FINALIZER] : [])] };
      next['status'] = { phase: 'Active' };
    },
    validate: (object) => specFinalizerErrors(listField(objectField(object, 'spec'), 'finalizers')),
    strategy: {
      holdsDeletion: (object) =>
        listField(objectField(object, 'spec'), 'finalizers').length > 0 ||
        listField(metadataOf(object), 'finalizers').length > 0,
      beginDeletion: (object) => {
        delete metadataOf(object)['deletionGracePeriodSeconds'];
        object['status'] = { ...objectField(object, 'status'), phase: 'Terminating' };
      },
    },
  });
}

export function isTerminating(namespace: JsonObject): boolean {
  return text(metadataOf(namespace), 'deletionTimestamp') !== '';
}

/** The namespace without the finalizer that waits for its content. */
export function finalized(namespace: JsonObject): JsonObject {
  const spec = objectField(namespace, 'spec');
  const finalizers = listField(spec, 'finalizers').filter((finalizer) => finalizer !== FINALIZER);
  if (finalizers.length > 0) return { ...namespace, spec: { ...spec, finalizers } };
  const { finalizers: _none, ...rest } = spec;
  return { ...namespace, spec: rest };
}
