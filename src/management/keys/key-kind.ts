/** OwnedAccessKey as the API machinery needs to know it. */

import { defineResource, type ObjectView, type ResourceDefinition } from '../../api/resource-definition.ts';
import type { TypeTable } from '../../api/schema/notation.ts';
import { objectField } from '../../api/validation/metadata.ts';
import { subdomainProblem } from '../../api/validation/names.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JsonObject } from '../../lib/json.ts';
import { keyColumns } from './key-columns.ts';
import { KEY_TYPES_ALLOWED, validateKey, type KeyLimits } from './key-validation.ts';
import { keyWarnings } from './key-warnings.ts';
import type { StoredKeys } from './stored-key.ts';

export const MANAGEMENT_GROUP = 'management.platform.sh';
export const MANAGEMENT_VERSION = 'v1';
/** Where the store keeps the keys. */
export const KEY_STORAGE = `ownedaccesskeys.${MANAGEMENT_GROUP}`;

/** How long a deletion waits before the object goes, in seconds; `asked` is what the client wants. */
export type GracePeriod = (object: JsonObject, asked: number | undefined) => number;

export interface KeyKindOptions {
  /** Holds `KEY_TYPES`, `SCOPE_TYPES` and `META_TYPES`. */
  readonly types: TypeTable;
  readonly clock: Clock;
  readonly limits: KeyLimits;
  readonly forms: StoredKeys;
  readonly gracePeriodSeconds: GracePeriod;
}

export function ownedAccessKeys(options: KeyKindOptions): ResourceDefinition {
  const { types, clock, limits, forms, gracePeriodSeconds } = options;
  const view: ObjectView = forms;
  return defineResource({
    group: MANAGEMENT_GROUP,
    version: MANAGEMENT_VERSION,
    kind: 'OwnedAccessKey',
    plural: 'ownedaccesskeys',
    singular: 'ownedaccesskey',
    shortNames: ['oak'],
    isNamespaced: false,
    storage: KEY_STORAGE,
    schema: types.get('management.OwnedAccessKey'),
    checkName: subdomainProblem,
    hasStatus: true,
    hasGeneration: true,
    hasTypedItems: true,
    allowsUnconditionalUpdate: false,
    needsQualifiedFinalizers: false,
    answersSecret: true,
    patchKinds: ['json', 'merge', 'apply'],
    columns: keyColumns(),
    applyDefaults,
    prepare: (next, previous, stored) => forms.prepare(next, previous, stored),
    validate: (next, previous) => validateKey({ next, previous, nowMs: clock.now() }, limits),
    warnings: keyWarnings,
    gracePeriodSeconds,
    view,
  });
}

/** A type that is given but empty. One that is not given at all is missing. */
function applyDefaults(key: JsonObject): void {
  const spec = objectField(key, 'spec');
  if (spec['type'] === '') spec['type'] = KEY_TYPES_ALLOWED[0] ?? '';
}
