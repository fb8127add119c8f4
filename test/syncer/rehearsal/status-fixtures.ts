/** Objects, configurations and the type of a case, for the tests of the status sentences. */

import type { StatusFacts } from '../../../src/syncer/rehearsal/object-status.ts';
import type { ReportedEvent, SyncStatus } from '../../../src/syncer/rehearsal/sync-status.ts';
import {
  timeText,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type StringMap,
} from '../../../src/kube/object.ts';
import { FIELD_MANAGER } from '../../../src/syncer/translate/bookkeeping.ts';
import { stored, type MemoryClusters } from '../../cli/live/memory-clusters.ts';

export const NOW = Date.parse('2026-01-01T12:00:00Z');
const PATCHES = `
        - path: metadata.annotations.secret
          reference: {apiVersion: v1, kind: Secret}
        - path: metadata.labels.broken
          expression: value.a.b`;

export function configWith({ sync = '', own = '' } = {}): string {
  return `sync:
  toHost:
    endpoints:
      patches:${PATCHES}
${sync}
endpointSyncer:
  name: vc
  host: {namespace: host}
${own}`;
}

export function object(
  kind: string,
  key: string,
  more: Record<string, unknown> = {},
  metadata: object = {},
): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return stored({
    apiVersion: 'v1',
    kind,
    metadata: { namespace, name, ...metadata },
    ...more,
  } as KubeObject); // built from JSON parts
}

export const web = (annotations: StringMap = {}, labels: StringMap = {}): KubeObject =>
  object('Endpoints', 'shop/web', {}, { annotations, labels });
export const service = (spec: object = {}): KubeObject =>
  object('Service', 'shop/web', { spec: { ports: [{ port: 80 }], ...spec } });
/** With a selector, so that its addresses are not copied. */
export const selecting = (): KubeObject => service({ selector: { app: 'a' } });
export const sliceOf = (name: string, manager?: string): KubeObject => {
  const labels: StringMap = { 'kubernetes.io/service-name': name };
  if (manager !== undefined) labels['endpointslice.kubernetes.io/managed-by'] = manager;
  return object('EndpointSlice', 'shop/web-1', { addressType: 'IPv4', endpoints: [] }, { labels });
};
export const ALL_KINDS = configWith({ sync: '    endpointSlices: {enabled: true}', own: '  services: sync' });
export const event = (reason: string, note: string, type = 'Warning'): ReportedEvent => ({
  type,
  reason,
  note,
  lastMs: NOW - 60_000,
});

/** Of a copy that this program has written last at this time. */
export const writtenAt = (ms: number): ManagedFieldsEntry => ({
  manager: FIELD_MANAGER,
  operation: 'Update',
  time: timeText(ms),
});

export interface Case extends Partial<MemoryClusters> {
  readonly config?: string;
  readonly facts?: Partial<StatusFacts>;
  /** The state after a sync, edited. */
  readonly after?: (clusters: MemoryClusters) => MemoryClusters;
  /** Default: shop/web. */
  readonly key?: string;
  readonly isHost?: boolean;
  readonly kind?: string;
  readonly expected: readonly [state: SyncStatus['state'], reason: string, sentence: string | RegExp];
}

export const hostWeb = 'host/web-x-shop-x-vc';
/** The copy of the Endpoints with more annotations and other labels. */
export const editedHost =
  ({ annotations = {}, ...metadata }: Pick<ObjectMeta, 'annotations' | 'labels' | 'managedFields'>) =>
  ({ virtual, host }: MemoryClusters): MemoryClusters => ({
    virtual,
    host: host.map((one) => {
      if (one.kind !== 'Endpoints') return one;
      const merged = { ...one.metadata.annotations, ...annotations };
      return stored({ ...one, metadata: { ...one.metadata, ...metadata, annotations: merged } }, one);
    }),
  });
