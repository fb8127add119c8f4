/** Where kinds have a say in each other's writes. */

import type { StoredEntry } from '../store/types.ts';
import type { ResourceDefinition } from './resource-definition.ts';

/** What a kind's neighbours have to say about its writes. */
export interface Admission {
  /** Before an object is made; throws a `StatusError` to refuse. */
  beforeCreate(definition: ResourceDefinition, namespace: string, name: string): Promise<void>;
  /** Before an object is deleted; throws a `StatusError` to refuse. */
  beforeDelete(definition: ResourceDefinition, entry: StoredEntry): Promise<void>;
  /** After every committed write; must not throw. */
  afterWrite(definition: ResourceDefinition, change: CommittedWrite): Promise<void>;
}

export interface CommittedWrite {
  readonly type: 'created' | 'updated' | 'deleted';
  readonly entry: StoredEntry;
}
