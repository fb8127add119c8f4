/** The table of kinds that an embedded cluster serves. */

import type { Authorizer } from '../../apiserver/request/authorizer.ts';
import { type ResourceDefinition } from '../../apiserver/objects/resource-definition.ts';
import { DefinitionTable } from '../../apiserver/objects/definition-table.ts';
import { selfSubjectAccessReviews } from '../../apiserver/access-review.ts';
import { builtInTypes } from './built-in-types.ts';
import { configMaps, secrets } from './config-data.ts';
import { endpointSlices } from './endpoint-slice.ts';
import { endpoints } from './endpoints.ts';
import { coreEvents, groupEvents } from '../../apiserver/event-kinds.ts';
import { leases } from './lease.ts';
import { namespaces } from './namespace.ts';
import { pods } from './pod.ts';
import { services } from './service.ts';

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
