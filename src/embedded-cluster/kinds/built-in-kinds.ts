/** The table of kinds that an embedded cluster serves. */

import type { Authorizer } from '../../apiserver/request/request-info.ts';
import {
  type ResourceDefinition,
  defineResource,
  DefinitionTable,
} from '../../apiserver/objects/resource-definition.ts';
import { selfSubjectAccessReviews } from '../../apiserver/access-review.ts';
import { builtInTypes } from './built-in-types.ts';
import { configMaps, secrets } from './config-data.ts';
import { endpointSlices } from './endpoint-slice.ts';
import { endpoints } from './endpoints.ts';
import { coreEvents, groupEvents } from '../../apiserver/event-kinds.ts';
import { namespaces } from './namespace.ts';
import { pods } from './pod.ts';
import { services } from './service.ts';
import { invalidValue, type FieldError } from '../../apiserver/status.ts';
import type { TypeTable } from '../../apiserver/schema/object-schema.ts';
import type { JsonObject } from '../../base/json.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/object-view.ts';
import { objectField, text } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';

export function builtInKinds(
  authorizer: Authorizer,
  others: readonly ResourceDefinition[] = [],
): DefinitionTable {
  const types = builtInTypes();
  return new DefinitionTable([
    configMaps(types),
    endpoints(types),
    coreEvents(types),
    namespaces(types),
    pods(types),
    secrets(types),
    services(types),
    selfSubjectAccessReviews(types, authorizer),
    leases(types),
    endpointSlices(types),
    groupEvents(types),
    ...others,
  ]);
}

// Leases of coordination.k8s.io.

function leases(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    plural: 'leases',
    singular: 'lease',
    isNamespaced: true,
    schema: types.get('coordination.Lease'),
    checkName: subdomainProblem,
    strategy: { allowsCreateOnUpdate: true },
    allowsUnconditionalUpdate: false,
    columns: [
      NAME_COLUMN,
      textColumn('Holder', 'The holder of the lease.', (object) =>
        text(objectField(object, 'spec'), 'holderIdentity'),
      ),
      AGE_COLUMN,
    ],
    validate,
  });
}

function validate(object: JsonObject): FieldError[] {
  const spec = objectField(object, 'spec');
  const errors: FieldError[] = [];
  for (const [field, least, detail] of [
    ['leaseDurationSeconds', 1, 'must be greater than 0'],
    ['leaseTransitions', 0, 'must be greater than or equal to 0'],
  ] as const) {
    const value = spec[field];
    if (typeof value === 'number' && value < least) errors.push(invalidValue(`spec.${field}`, value, detail));
  }
  return errors;
}
