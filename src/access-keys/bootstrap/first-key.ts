/** The first administrator's key. */

import { MANAGEMENT_API_VERSION } from '../api-group.ts';
import type { JsonObject } from '../../base/json.ts';
import { ADMINISTRATORS } from '../identity.ts';

export const FIRST_KEY_NAME = 'bootstrap-admin';
const FIRST_USER = 'admin';

/** The object to create, with `key` as its secret if given. `maxTtlMs` 0: it never expires. */
export function firstKey(maxTtlMs: number, key?: string): JsonObject {
  return {
    apiVersion: MANAGEMENT_API_VERSION,
    kind: 'OwnedAccessKey',
    metadata: { name: FIRST_KEY_NAME },
    spec: {
      displayName: 'First administrator',
      description: 'Created by keys bootstrap. Create your own keys with it, then revoke it.',
      user: FIRST_USER,
      groups: [ADMINISTRATORS],
      type: 'User',
      ttl: Math.floor(maxTtlMs / 1000),
      ...(key === undefined ? {} : { key }),
    },
  };
}
