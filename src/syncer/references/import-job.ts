/** What an import works on and whom it tells. */

import type { KubeObject } from '../../kube/object.ts';
import type { NameTranslator } from '../translate/types.ts';
import type { CopyWriter } from './copy-writer.ts';
import type { ReferenceDecision, ReferenceObservation } from './decide-reference.ts';
import type { ImportForgeOptions } from './import-forge.ts';
import type { KindCaches } from './kind-caches.ts';
import type { ReferenceId } from './referenced-kind.ts';
import type { RefusalRules } from './refusals.ts';

export interface KindWorkplace {
  readonly caches: KindCaches;
  readonly host: CopyWriter;
  readonly virtual: CopyWriter;
}

/** What is being done: the reference, and what both sides showed. */
export interface ImportJob {
  readonly id: ReferenceId;
  readonly work: KindWorkplace;
  readonly seen: ReferenceObservation;
}

/** What both directions need. */
export interface ImportContext {
  readonly forge: ImportForgeOptions;
  readonly names: NameTranslator;
  readonly rules: RefusalRules;
  /** The decision may be another one now. */
  recheck(id: ReferenceId): void;
  /** Tells the Endpoints that name the object; each of them once. Undefined: all is well again. */
  tellProblem(id: ReferenceId, problem: ReferenceDecision['problem']): void;
  tellImported(id: ReferenceId, note: string): void;
  /** Something that everybody who names the object must hear of. */
  alert(id: ReferenceId, reason: 'ReferenceImported' | 'Contested', note: string): void;
}

/** The cache is behind the API server, or the object is on its way out; events usually come sooner. */
export const AGAIN_MS = 500;

/** Read from the API server, is it still the object that the cache showed as our copy? */
export function isStillOurs(actual: KubeObject, copy: KubeObject): boolean {
  return actual.metadata.uid === copy.metadata.uid && actual.metadata.deletionTimestamp === undefined;
}
