/** What an API server answers, checked as far as the rest of the program relies on it. */

import { apiVersionOf, type KubeObject, type Resource } from '../kube/object.ts';
import { isJsonObject, type JsonValue } from '../lib/json.ts';
import { MalformedAnswerError, type ObjectList } from './types.ts';

/** An object, as far as anybody relies on it: it has metadata. Throws `MalformedAnswerError`. */
export function asObject(value: JsonValue): KubeObject {
  if (!isJsonObject(value) || !isJsonObject(value['metadata'])) {
    throw new MalformedAnswerError(`the answer is not a Kubernetes object: ${excerptOf(value)}`);
  }
  return value as unknown as KubeObject; // it has metadata, and the rest is raw JSON
}

/** Items of a list come without their type; it is added, so that they equal the same objects from a watch. */
export function asList(value: JsonValue, resource: Resource): ObjectList {
  const metadata = isJsonObject(value) ? value['metadata'] : undefined;
  const items = isJsonObject(value) ? (value['items'] ?? []) : undefined;
  if (!isJsonObject(metadata) || !Array.isArray(items)) {
    throw new MalformedAnswerError(`the answer is not a list of ${resource.plural}: ${excerptOf(value)}`);
  }
  const apiVersion = apiVersionOf(resource);
  const objects = items.map((item) => {
    const object = asObject(item);
    object.apiVersion ??= apiVersion;
    object.kind ??= resource.kind;
    return object;
  });
  return {
    resourceVersion: text(metadata['resourceVersion']),
    continueToken: text(metadata['continue']),
    items: objects,
  };
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function excerptOf(value: JsonValue): string {
  return JSON.stringify(value).slice(0, 80);
}
