/** Where kinds have a say in each other's writes. */

import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { Target } from '../request/target.ts';
import type { UserInfo } from '../request/user.ts';

/** What a kind's neighbours have to say about its writes. */
export interface Admission {
  /** Before an object is made; throws a `StatusError` to refuse. */
  beforeCreate(definition: ResourceDefinition, namespace: string, name: string): Promise<void>;
  /**
   * Before an object is validated and stored, for rules that need the writer or other objects: throws a `StatusError` to refuse, may
   * complete `next` with what follows from the writer. Not asked for the server's own writes.
   */
  review(write: ReviewedWrite): Promise<void>;
  /** Before an object is deleted; throws a `StatusError` to refuse. */
  beforeDelete(definition: ResourceDefinition, entry: StoredEntry): Promise<void>;
  /** After every committed write; must not throw. */
  afterWrite(definition: ResourceDefinition, change: CommittedWrite): Promise<void>;
}

/** A write that is about to happen. */
export interface ReviewedWrite {
  readonly target: Target;
  readonly user: UserInfo;
  /** The object as it would be stored, in the shape of its kind; a copy of its own. */
  readonly next: JsonObject;
  /** The state before, in the shape of its kind; undefined for a create. */
  readonly previous: JsonObject | undefined;
  /** The state before, as it is stored. */
  readonly entry: StoredEntry | undefined;
  readonly isDryRun: boolean;
}

export interface CommittedWrite {
  readonly type: 'created' | 'updated' | 'deleted';
  readonly entry: StoredEntry;
}
