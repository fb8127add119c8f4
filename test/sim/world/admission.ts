/** Mutating webhooks and policies of the host, which change the copies that are written. */

import { isJsonObject, type JsonValue } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import type { AdmissionForm } from '../history/operations.ts';
import { VCLUSTER } from './names.ts';
import type { Admission } from './sim-cluster.ts';

/** No user writes it. */
const KEY = 'example.com/admitted';
const RECORD = 'endpoint-syncer/last-synced';
const PORT = 9999;

export function admissionOf(plural: string, form: AdmissionForm): Admission {
  let stamps = 0;
  const change = (object: KubeObject): KubeObject => {
    switch (form) {
      case 'annotates':
        return withAnnotation(object, KEY, 'yes');
      case 'stamps':
        return withAnnotation(object, KEY, `${stamps++}`);
      case 'strips':
        return withAnnotation(object, RECORD, undefined);
      case 'setsPort':
        return withPorts(object);
    }
  };
  return (written, object) =>
    written === plural && object.metadata.labels?.['vcluster.loft.sh/managed-by'] === VCLUSTER
      ? change(object)
      : object;
}

function withAnnotation(
  { metadata, ...object }: KubeObject,
  key: string,
  value: string | undefined,
): KubeObject {
  const { [key]: _, ...annotations } = metadata.annotations ?? {};
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...annotations, ...(value !== undefined && { [key]: value }) } },
  };
}

function withPorts(object: KubeObject): KubeObject {
  const { subsets } = object;
  if (object.kind === 'EndpointSlice') return { ...object, ports: portsOf(object['ports']) };
  if (!Array.isArray(subsets)) return object;
  return {
    ...object,
    subsets: subsets.map((subset: JsonValue) =>
      isJsonObject(subset) ? { ...subset, ports: portsOf(subset['ports']) } : subset,
    ),
  };
}

function portsOf(ports: unknown): JsonValue {
  return Array.isArray(ports)
    ? ports.map((port: JsonValue) => (isJsonObject(port) ? { ...port, port: PORT } : port))
    : [];
}
