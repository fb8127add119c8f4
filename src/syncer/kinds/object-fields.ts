/** Fields that the objects of several kinds have, for warnings about patch paths that can never match. */

import type { Fields } from '../patch/check-patch.ts';

export const REFERENCE_FIELDS: Fields = {
  apiVersion: 'value',
  fieldPath: 'value',
  kind: 'value',
  name: 'value',
  namespace: 'value',
  resourceVersion: 'value',
  uid: 'value',
};
const METADATA_FIELDS: Fields = {
  annotations: { '*': 'value' },
  creationTimestamp: 'value',
  deletionGracePeriodSeconds: 'value',
  deletionTimestamp: 'value',
  finalizers: { '*': 'value' },
  generateName: 'value',
  generation: 'value',
  labels: { '*': 'value' },
  managedFields: 'any',
  name: 'value',
  namespace: 'value',
  ownerReferences: 'any',
  resourceVersion: 'value',
  selfLink: 'value',
  uid: 'value',
};
export const PORT_FIELDS = {
  appProtocol: 'value',
  name: 'value',
  port: 'value',
  protocol: 'value',
} as const satisfies Fields;
export const OBJECT_FIELDS = { apiVersion: 'value', kind: 'value', metadata: METADATA_FIELDS } as const;
