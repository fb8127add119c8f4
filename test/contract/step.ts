/** The type of a step of the contract. */

import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { Step } from './transcript.ts';

export const EP = '/api/v1/namespaces/{ns}/endpoints';
export const CM = '/api/v1/namespaces/{ns}/configmaps';
export const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
export const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
export const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
export const APPLY = { 'content-type': 'application/apply-patch+yaml' };
export const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
export const PARTIAL = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' };

type Options = Pick<Step, 'differs' | 'ourStatus'> & { headers?: Readonly<Record<string, string>> };

type Sender = (id: string, path: string, body?: JsonValue, options?: Options) => Step;

function sender(method: string): Sender {
  return (id, path, body, { headers, differs, ourStatus } = {}) => ({
    id,
    request: { method, path, ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) },
    ...(differs === undefined ? {} : { differs }),
    ...(ourStatus === undefined ? {} : { ourStatus }),
  });
}

/** A step by its method. */
export const send = {
  GET: sender('GET'),
  POST: sender('POST'),
  PUT: sender('PUT'),
  PATCH: sender('PATCH'),
  DELETE: sender('DELETE'),
  OPTIONS: sender('OPTIONS'),
};

/** Everything that an address and a port can have. */
export const SUBSETS: JsonValue = [
  {
    addresses: [
      { ip: '10.1.0.2', nodeName: 'n1', targetRef: { kind: 'Pod', name: 'p', namespace: '{ns}' } },
      { ip: '10.1.0.1', hostname: 'h' },
    ],
    notReadyAddresses: [{ ip: '10.1.0.9' }],
    ports: [
      { name: 'http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP', appProtocol: 'x/y' },
    ],
  },
];

export function endpoints(name: string, more: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { name }, ...more };
}

export function configMap(name: string, more: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...more };
}
