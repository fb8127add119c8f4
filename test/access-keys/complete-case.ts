/** Adds the required fields of an OwnedAccessKey (display name, lifetime, type, subject) to generic cases, which were recorded with a kind
 * whose `spec` has no required fields, and removes them from the response. `spec.key`, which only the response to a create contains, has
 * separate cases.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import type { RawAnswer } from '../contract/raw-client.ts';
import type { CaseRequest } from './case-runner.ts';

const REQUIRED: JsonObject = { displayName: 'D', ttl: 60, type: 'User', user: 'u' };
const COLLECTION = /^\/apis\/management\.platform\.sh\/v1\/ownedaccesskeys(\?|$)/u;
const OBJECT = /^\/apis\/management\.platform\.sh\/v1\/ownedaccesskeys\/[^/?]+(\?|$)/u;

export interface Completed {
  readonly request: CaseRequest;
  /** Fields of `spec` that the case did not send. */
  readonly added: readonly string[];
}

/** `isFirst`: no object has been created before, so that an apply creates it. */
export function completed(request: CaseRequest, isFirst: boolean): Completed {
  const { body, bodyRaw } = request;
  if (!isWhole(request, isFirst)) return { request, added: [] };
  if (bodyRaw?.includes('spec: {ttl: 5}')) {
    const text = bodyRaw.replace('spec: {', 'spec: {displayName: D, type: User, user: u, ');
    return { request: { ...request, bodyRaw: text }, added: ['displayName', 'type', 'user'] };
  }
  if (!isJsonObject(body) || (body['spec'] !== undefined && !isJsonObject(body['spec']))) {
    return { request, added: [] };
  }
  const spec: JsonObject = isJsonObject(body['spec']) ? body['spec'] : {};
  const added = Object.keys(REQUIRED).filter((field) => !has(spec, field));
  const more: JsonObject = Object.fromEntries(added.map((field) => [field, REQUIRED[field] ?? null]));
  return { request: { ...request, body: { ...body, spec: { ...spec, ...more } } }, added };
}

/** The owner may be named in three ways. */
function has(spec: JsonObject, field: string): boolean {
  const names = field === 'user' ? ['user', 'team', 'subject'] : [field];
  return names.some((name) => Object.hasOwn(spec, name));
}

/** The request has the whole object: a create, or a PUT. */
function isWhole(
  { method = 'GET', path, headers = {}, contentType = '' }: CaseRequest,
  isFirst: boolean,
): boolean {
  if (method === 'POST') return COLLECTION.test(path);
  if (method === 'PUT') return OBJECT.test(path);
  const type = headers['Content-Type'] ?? contentType;
  return isFirst && method === 'PATCH' && OBJECT.test(path) && type.includes('apply-patch');
}

/** The answer without these fields of `spec`, and without the expiry, which the observed server did not show. */
export function asObserved(answer: RawAnswer, fields: readonly string[]): RawAnswer {
  const { json } = answer;
  if (!isJsonObject(json) || !isJsonObject(json['spec'])) return answer;
  const spec: Record<string, JsonValue> = { ...json['spec'] };
  for (const field of fields) delete spec[field];
  return { ...answer, json: withoutExpiry({ ...json, spec }) };
}

export function withoutExpiry(key: JsonObject): JsonObject {
  if (!isJsonObject(key['status'])) return key;
  const { expiresAt: _expiresAt, ...status } = key['status'];
  return { ...key, status };
}
