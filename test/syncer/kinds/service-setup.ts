/** Services of the test, and their kind. */

import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { createServiceKind } from '../../../src/syncer/kinds/services.ts';

export const hasSyncedEndpoints = ({ metadata }: KubeObject): boolean => metadata.name === 'db';
export const kind = createServiceKind({ hasSyncedEndpoints, neverCopied: () => undefined, allow: [] });

export function service(spec: JsonObject, status: JsonObject = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'db', namespace: 'shop' }, spec, status };
}

export const PORT = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 };

/** The spec of a copy before patches. */
export const BASE: JsonObject = {
  type: 'ClusterIP',
  sessionAffinity: 'None',
  clusterIP: '10.9.9.9',
  clusterIPs: ['10.9.9.9'],
  ports: [PORT, { ...PORT, name: 'alt', port: 81 }],
};
