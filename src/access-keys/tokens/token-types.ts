/** The fields of a DirectClusterEndpointToken. Notation: `apiserver/schema/notation.ts`; the scope's are those of a key. */

import type { Descriptions } from '../../apiserver/schema/notation.ts';

/** The scope is a pointer: a scope without entries allows nothing, an absent one means that of the key. */
export const TOKEN_TYPES = `
management.DirectClusterEndpointToken = metadata! meta.ObjectMeta; spec! management.DirectClusterEndpointTokenSpec; status! management.DirectClusterEndpointTokenStatus
management.DirectClusterEndpointTokenSpec = ttl int64; scope *management.AccessKeyScope
management.DirectClusterEndpointTokenStatus = token string
`;

export const TOKEN_DESCRIPTIONS: Descriptions = {
  'management.DirectClusterEndpointToken':
    'A time-limited token for direct cluster endpoints: connected clusters that are accessed without the central instance. It is returned ' +
    'once and not stored, so it cannot be read, listed or deleted. It expires after its ttl or with the access key that created it.',
  'management.DirectClusterEndpointToken.metadata':
    'Standard object metadata. Labels and annotations are returned as they were sent. The default of name is the id of the token.',
  'management.DirectClusterEndpointToken.spec': 'Requested lifetime and scope. May be empty.',
  'management.DirectClusterEndpointToken.status': 'The issued token; empty for a dry run.',
  'management.DirectClusterEndpointTokenSpec':
    'Requested lifetime and scope. The response contains the granted ones.',
  'management.DirectClusterEndpointTokenSpec.ttl':
    'Lifetime of the token in seconds. 0 means the default of the server. It is reduced, with a warning, to the remaining lifetime of the ' +
    'access key that creates it.',
  'management.DirectClusterEndpointTokenSpec.scope':
    'Scope of the token, which must be within that of the access key. Without it the token has the scope of the access key.',
  'management.DirectClusterEndpointTokenStatus': 'The issued token.',
  'management.DirectClusterEndpointTokenStatus.token':
    'The token, a JWT that the cluster accepts as a bearer token. It is a secret and returned only once.',
};
