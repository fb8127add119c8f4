/** What this process remembers of imports that it left in step: enough to see that nothing changed since, without a request. */

import type { KubeObject } from '../../kube/object.ts';

export interface ImportState {
  /** uid and version of the original. */
  readonly source: string;
  /** uid and version of the copy. */
  readonly copy: string;
  /** There is more in the copy than was written, or it cannot be changed: it has to be read before it is written again. */
  readonly isReadFirst: boolean;
}

export function importState(source: KubeObject, copy: KubeObject): ImportState {
  const isReadFirst = Object.hasOwn(copy, 'status') || copy['immutable'] === true;
  return { source: stateOf(source), copy: stateOf(copy), isReadFirst };
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
  return state !== undefined && state.copy === stateOf(copy) && !state.isReadFirst;
}
