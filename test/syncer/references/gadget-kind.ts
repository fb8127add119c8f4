/** A kind that is not built in, referenced by name and imported both ways. */

import type { ReferencedKind } from '../../../src/syncer/references/referenced-kind.ts';

const RESOURCE = {
  group: 'example.com',
  version: 'v1',
  kind: 'Gadget',
  plural: 'gadgets',
  isNamespaced: true,
};

export const GADGET_KIND: ReferencedKind = {
  id: 'example.com/v1 Gadget',
  virtual: RESOURCE,
  host: RESOURCE,
  isNamed: true,
  isSynced: true,
  isImportable: true,
};
