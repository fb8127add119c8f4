/** OwnedAccessKey as the API machinery needs to know it. */

import {
  defineResource,
  type ObjectView,
  type ResourceDefinition,
  type Subresource,
} from '../../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../../apiserver/schema/notation.ts';
import { objectField, text } from '../../../apiserver/validation/metadata.ts';
import { subdomainProblem } from '../../../apiserver/validation/names.ts';
import type { Clock } from '../../../base/clock.ts';
import type { JsonObject } from '../../../base/json.ts';
import { keyColumns } from './key-columns.ts';
import { KEY_TYPES_ALLOWED, validateKey, type KeyLimits } from './key-validation.ts';
import { keyWarnings } from './key-warnings.ts';
import type { StoredKeys } from '../stored/stored-key.ts';

export const MANAGEMENT_GROUP = 'management.platform.sh';
export const MANAGEMENT_VERSION = 'v1';
/** Where the store keeps the keys. */
export const KEY_STORAGE = `ownedaccesskeys.${MANAGEMENT_GROUP}`;

export interface KeyKindOptions {
  /** Holds `KEY_TYPES`, `SCOPE_TYPES` and `META_TYPES`. */
  readonly types: TypeTable;
  readonly clock: Clock;
  readonly limits: KeyLimits;
  readonly forms: StoredKeys;
  readonly rotate: Subresource;
}

export function ownedAccessKeys(options: KeyKindOptions): ResourceDefinition {
  const { types, clock, limits, forms } = options;
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
    subresources: [options.rotate],
    hasGeneration: true,
    hasTypedItems: true,
    needsQualifiedFinalizers: false,
    responseContainsSecret: true,
    patchKinds: ['json', 'merge', 'apply'],
    columns: keyColumns(),
    selectableFields: {
      'spec.user': (key) => text(objectField(key, 'spec'), 'user'),
      'spec.team': (key) => text(objectField(key, 'spec'), 'team'),
    },
    applyDefaults,
    prepare: (next, previous, stored) => forms.prepare(next, previous, stored),
    validate: (next, previous) => validateKey({ next, previous, nowMs: clock.now() }, limits),
    warnings: keyWarnings,
    // The key works until then, for callers that have to be given another one first.
    gracePeriodSeconds: (_key, asked = 0) => asked,
    view,
  });
}

/** A type that is given but empty. One that is not given at all is missing. */
function applyDefaults(key: JsonObject): void {
  const spec = objectField(key, 'spec');
  if (spec['type'] === '') spec['type'] = KEY_TYPES_ALLOWED[0] ?? '';
}
