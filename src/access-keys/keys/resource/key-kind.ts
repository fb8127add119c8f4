/** The resource definition of OwnedAccessKey. */

import { MANAGEMENT_GROUP, MANAGEMENT_VERSION } from '../../api-group.ts';
import {
  defineResource,
  type ObjectView,
  type ResourceDefinition,
  type Subresource,
} from '../../../apiserver/objects/resource-definition.ts';
import type { TypeTable } from '../../../apiserver/schema/notation.ts';
import { metadataOf, objectField, objectList, text } from '../../../apiserver/metadata.ts';
import { subdomainProblem } from '../../../kube/names.ts';
import type { Clock } from '../../../base/clock.ts';
import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { keyColumns } from './key-columns.ts';
import { KEY_TYPES_ALLOWED, validateKey, type KeyLimits } from './key-validation.ts';
import { scopeWarnings } from '../../authorization/scope-validation.ts';
import { APPLIED_MANIFEST } from '../stored/last-applied.ts';
import type { StoredKeys } from '../stored/stored-key.ts';

/** Resource of the keys in the store. */
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
    // The key works until the grace period ends.
    gracePeriodSeconds: (_key, asked = 0) => asked,
    view,
  });
}

/** An empty type means User; a missing type is an error. */
function applyDefaults(key: JsonObject): void {
  const spec = objectField(key, 'spec');
  if (spec['type'] === '') spec['type'] = KEY_TYPES_ALLOWED[0] ?? '';
}

/** Deprecated fields with their replacement, and a secret that `kubectl apply` does not show. */
function keyWarnings(key: JsonObject, isCreated: boolean): readonly string[] {
  const spec = objectField(key, 'spec');
  const warnings: string[] = [];
  if (isCreated && text(spec, 'key') !== '' && isApplied(key)) {
    const name = text(metadataOf(key), 'name');
    warnings.push(
      `the secret of the access key is only in this response, which kubectl apply does not print: run endpoint-syncer keys rotate ${name} for a new one`,
    );
  }
  if (text(spec, 'parent') !== '' && isSetByClient(key, 'f:parent'))
    warnings.push('spec.parent is deprecated: use spec.identity');
  if (isJsonObject(spec['oidcLogin'])) warnings.push('spec.oidcLogin is deprecated: use spec.identity');
  return [...warnings, ...scopeWarnings(spec['scope'], 'spec.scope')];
}

/** False for a value that the server set, such as an inherited parent. */
function isSetByClient(key: JsonObject, field: string): boolean {
  return objectList(metadataOf(key), 'managedFields').some((entry) => {
    const fields = objectField(objectField(entry, 'fieldsV1'), 'f:spec');
    return fields[field] !== undefined;
  });
}

/** Client-side or server-side `kubectl apply`. */
function isApplied(key: JsonObject): boolean {
  const metadata = metadataOf(key);
  if (text(objectField(metadata, 'annotations'), APPLIED_MANIFEST) !== '') return true;
  return objectList(metadata, 'managedFields').some((entry) => entry['operation'] === 'Apply');
}
