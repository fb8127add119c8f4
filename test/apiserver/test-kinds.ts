/** A cluster-scoped kind with a status, as custom resources are, to test the generic API without a built-in kind. */

import { objectField } from '../../src/base/json.ts';
import { META_TYPES, TypeTable } from '../../src/apiserver/schema/object-schema.ts';
import { invalidValue } from '../../src/apiserver/status.ts';
import { defineResource, DefinitionTable } from '../../src/apiserver/objects/resource-definition.ts';
import { subdomainProblem } from '../../src/kube/names.ts';

const TYPES = `
OwnedAccessKey = metadata! meta.ObjectMeta; spec! OwnedAccessKeySpec; status! OwnedAccessKeyStatus
OwnedAccessKeySpec = displayName string; description string; user string; team string; groups []string atomic; ttl int64; type string; identity *Identity; identityRefresh *time
Identity = connectorData bytes
OwnedAccessKeyStatus = lastActivity *time
Token = metadata! meta.ObjectMeta; spec! TokenSpec
TokenSpec = ttl int64
`;

export const GROUP = 'management.platform.sh';

export function accessKeyTable(): DefinitionTable {
  const types = new TypeTable([META_TYPES, TYPES]);
  const shared = { group: GROUP, version: 'v1', isNamespaced: false, checkName: subdomainProblem };
  return new DefinitionTable([
    defineResource({
      ...shared,
      kind: 'OwnedAccessKey',
      plural: 'ownedaccesskeys',
      singular: 'ownedaccesskey',
      shortNames: ['oak'],
      schema: types.get('OwnedAccessKey'),
      hasStatus: true,
      hasGeneration: true,
      hasTypedItems: true,
      needsQualifiedFinalizers: false,
      allowsUnconditionalUpdate: false,
      gracePeriodSeconds: (object, asked) => (isGraceful(object['metadata']) ? (asked ?? 30) : 0),
      validate: (object) => {
        const ttl = Number(objectField(object, 'spec')['ttl'] ?? 0);
        const detail = 'must be greater than or equal to 0';
        return ttl < 0 ? [invalidValue('spec.ttl', ttl, detail)] : [];
      },
    }),
    defineResource({
      ...shared,
      kind: 'DirectClusterEndpointToken',
      plural: 'directclusterendpointtokens',
      singular: 'directclusterendpointtoken',
      verbs: ['create'],
      schema: types.get('Token'),
      respond: (object, { user }) => ({ ...object, status: { token: `for ${user.name}` } }),
    }),
  ]);
}

/** Only the objects g1, g2, … of the cases about graceful deletion have a grace period. */
function isGraceful(metadata: unknown): boolean {
  const { name } = metadata as { name?: string }; // decoded metadata
  return /^g\d$/.test(name ?? '');
}
