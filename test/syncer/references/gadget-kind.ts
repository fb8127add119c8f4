/** Kinds that are referenced by name and imported both ways: Secrets, and one that is not built in. */

import { SECRETS } from '../../../src/kube/object.ts';
import type { ReferencedKind } from '../../../src/syncer/references/referenced-kind.ts';

const RESOURCE = {
  group: 'example.com',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  isNamespaced: true,
};

const BOTH_WAYS = { isNamed: true, isSynced: true, isImportable: true };

export const SECRET_KIND: ReferencedKind = {
  id: 'v1 Secret',
  virtual: SECRETS,
  host: SECRETS,
  ...BOTH_WAYS,
};

export const GADGET_KIND: ReferencedKind = {
  id: 'example.com/v1 Gadget',
  virtual: RESOURCE,
  host: RESOURCE,
  ...BOTH_WAYS,
};
