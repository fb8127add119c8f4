/** URL paths of the Kubernetes API. */

import type { Resource } from '../object.ts';
import { failure } from '../status-error.ts';

/** `/api/v1/namespaces/NS/endpoints`, `/apis/GROUP/VERSION/…`; namespace '' means every namespace, or a cluster-scoped resource. */
export function collectionPath(resource: Resource, namespace: string): string {
  const base =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  return namespace === '' || !resource.isNamespaced
    ? `${base}/${resource.plural}`
    : `${base}/namespaces/${segment(namespace, 'namespace')}/${resource.plural}`;
}

/** The collection that an object of this namespace is created in. Throws a `StatusError` (400) without a namespace. */
export function namespacePath(resource: Resource, namespace: string): string {
  if (resource.isNamespaced && namespace === '')
    throw failure(400, 'BadRequest', `a ${resource.kind} needs a namespace`);
  return collectionPath(resource, namespace);
}

/** The path of one object. Throws a `StatusError` (400) for a name that cannot be one: it must never reach another path. */
export function objectPath(resource: Resource, namespace: string, name: string): string {
  return `${namespacePath(resource, namespace)}/${segment(name, 'name')}`;
}

/** `?a=1&b=2` of the parameters that are set; '' when none is. */
export function queryString(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') parts.push(`${key}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** The names almost everything has; they travel as they are. */
const PLAIN = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;

function segment(text: string, what: string): string {
  if (PLAIN.test(text)) return text;
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw failure(400, 'BadRequest', `${JSON.stringify(text)} cannot be the ${what} of an object`);
  }
  return encodeURIComponent(text);
}
