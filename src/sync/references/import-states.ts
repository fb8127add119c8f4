/** What this process remembers of imports that it left in step: enough to see that nothing changed since, without a request. */

import type { KubeObject } from '../../kube/object.ts';

export interface ImportState {
  /** uid and version of the original. */
  readonly source: string;
  /** uid and version of the copy. */
  readonly copy: string;
  /** What is in the copy beyond what was written: then it has to be read before it is written again. */
  readonly hasStatus: boolean;
}

export function importState(source: KubeObject, copy: KubeObject): ImportState {
  return { source: stateOf(source), copy: stateOf(copy), hasStatus: Object.hasOwn(copy, 'status') };
}

/** Changes with every write and with every re-creation. */
export function stateOf({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): string {
  return `${uid}@${resourceVersion}`;
}

/** Both are exactly what was left in step. */
export function isInStep(state: ImportState | undefined, source: KubeObject, copy: KubeObject): boolean {
  return state !== undefined && state.source === stateOf(source) && state.copy === stateOf(copy);
}

/** Nobody has written the copy since: its content is what was written then. */
export function isUntouched(state: ImportState | undefined, copy: KubeObject): boolean {
  return state !== undefined && state.copy === stateOf(copy) && !state.hasStatus;
}
