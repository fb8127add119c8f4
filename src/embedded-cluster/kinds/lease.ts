/** Leases of coordination.k8s.io. */

import { invalidValue, type FieldError } from '../../apiserver/field-error.ts';
import { defineResource, type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../apiserver/schema/notation.ts';
import type { JsonObject } from '../../base/json.ts';
import { AGE_COLUMN, NAME_COLUMN, textColumn } from '../../apiserver/objects/presentation/table.ts';
import { objectField, text } from '../../apiserver/metadata.ts';
import { subdomainProblem } from '../../kube/names.ts';

export function leases(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    plural: 'leases',
    singular: 'lease',
    isNamespaced: true,
    schema: types.get('coordination.Lease'),
    checkName: subdomainProblem,
    allowsCreateOnUpdate: true,
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
