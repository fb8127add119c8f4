/** Messages between a process and a server: objects as they are sent, the part that a selection shows, and responses that never arrive. */

import type { KubeObject } from '../../../src/kube/object.ts';
import { TransportError } from '../../../src/kube/types.ts';

/** The answer that never came. */
export function lostAnswer(): TransportError {
  return new TransportError('connection reset');
}

/** What a list or a watch of this scope shows. */
export function matches(
  object: KubeObject,
  { namespace, labelSelector }: { readonly namespace?: string; readonly labelSelector?: string },
): boolean {
  if (namespace !== undefined && object.metadata.namespace !== namespace) return false;
  if (labelSelector === undefined || labelSelector === '') return true;
  return labelSelector.split(',').every((part) => {
    const [key = '', value] = part.split(/!?=/);
    const actual = object.metadata.labels?.[key];
    if (part.includes('!=')) return actual !== value;
    return value === undefined ? actual !== undefined : actual === value;
  });
}

export function metadataOnly({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata,
  };
}

/** As it comes from the wire: the receiver may change it. Everything that crosses is JSON, which this copies faster than `structuredClone`. */
export function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf) as T; // of the same elements
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = copyOf((value as Record<string, unknown>)[key]); // JSON has no symbols
  return copy as T; // of the same members
}
