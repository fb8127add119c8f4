/** The fields of a DirectClusterEndpointToken. Notation: `api/schema/notation.ts`; the scope's are those of a key. */

import type { Descriptions } from '../../apiserver/schema/notation.ts';

/** The scope is a pointer: one without entries allows nothing, none at all is that of the key. */
export const TOKEN_TYPES = `
management.DirectClusterEndpointToken = metadata! meta.ObjectMeta; spec! management.DirectClusterEndpointTokenSpec; status! management.DirectClusterEndpointTokenStatus
management.DirectClusterEndpointTokenSpec = ttl int64; scope *management.AccessKeyScope
management.DirectClusterEndpointTokenStatus = token string
`;

export const TOKEN_DESCRIPTIONS: Descriptions = {
  'management.DirectClusterEndpointToken':
    'A token for direct cluster endpoints: connected clusters that are reached without the platform in between. It is answered once and ' +
    'not stored, so there is nothing to get, list or delete; it ends by itself, or with the access key that made it.',
  'management.DirectClusterEndpointToken.metadata':
    'Labels and annotations come back as they were sent. Without a name, the id of the token is the name.',
  'management.DirectClusterEndpointToken.spec': 'What the token is to be like. May be empty.',
  'management.DirectClusterEndpointToken.status': 'The token. A dry run answers an empty one.',
  'management.DirectClusterEndpointTokenSpec':
    'How long the token lives and what it reaches. The answer says what it got.',
  'management.DirectClusterEndpointTokenSpec.ttl':
    'How long the token lives, in seconds. 0 means the default of the server. It never outlives the access key that made it: a longer ' +
    'time is cut, with a warning.',
  'management.DirectClusterEndpointTokenSpec.scope':
    'What the token may reach; nothing that the access key that makes it may not. Without a scope, the token has that of the access key.',
  'management.DirectClusterEndpointTokenStatus': 'What the server answered.',
  'management.DirectClusterEndpointTokenStatus.token':
    'The token, a JWT. Send it as a bearer token to the cluster. It is a secret, and shown this once.',
};
