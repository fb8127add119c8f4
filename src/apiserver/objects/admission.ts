/** Admission as a port: rules about writes that depend on the writer or on other objects. */

import type { JsonObject } from '../../base/json.ts';
import type { StoredEntry } from '../storage/store.ts';
import type { ResourceDefinition } from './resource-definition.ts';
import type { Target } from './target.ts';
import type { UserInfo } from '../user.ts';

export interface Admission {
  /** Before an object is created; throws a `StatusError` to reject. */
  beforeCreate?(definition: ResourceDefinition, namespace: string, name: string): Promise<void>;
  /**
   * Before an object is validated and stored: throws a `StatusError` to reject, may set fields of `next` that depend on the writer. Not
   * called for writes of the server itself.
   */
  admit(write: AdmissionRequest): Promise<void>;
  /** Before an object is deleted; throws a `StatusError` to reject. */
  beforeDelete?(definition: ResourceDefinition, entry: StoredEntry): Promise<void>;
  /** After every committed write; must not throw. */
  afterWrite?(definition: ResourceDefinition, change: CommittedWrite): Promise<void>;
}

/** A write before it is validated and stored. */
export interface AdmissionRequest {
  readonly target: Target;
  readonly user: UserInfo;
  /** The object as it would be stored, in the shape of its kind; may be changed. */
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
