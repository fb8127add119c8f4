/** Short requests for keys, to a server with that kind. */

import type { JsonObject, JsonValue } from '../../src/base/json.ts';
import type { RawAnswer } from '../contract/raw-client.ts';
import { accessKeyTable } from './test-kinds.ts';
import { type TestServer, type TestServerOptions, startTestServer } from './test-server.ts';

export const KEYS = '/apis/management.platform.sh/v1/ownedaccesskeys';
export const TYPE = { apiVersion: 'management.platform.sh/v1', kind: 'OwnedAccessKey' };
export const MERGE = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const APPLY = 'application/apply-patch+yaml';

/** Short requests for keys. */
export class Keys implements AsyncDisposable {
  readonly api: TestServer;

  constructor(api: TestServer) {
    this.api = api;
  }

  static async open(options: Partial<TestServerOptions> = {}): Promise<Keys> {
    return new Keys(await startTestServer({ table: accessKeyTable(), ...options }));
  }

  send(method: string, path = '', body?: JsonValue, contentType?: string): Promise<RawAnswer> {
    const headers = contentType === undefined ? {} : { 'content-type': contentType };
    const request = { method, path: KEYS + path, headers };
    return this.api.client.send(body === undefined ? request : { ...request, body });
  }

  create(name: string, more: JsonObject = {}, spec: JsonObject = {}): Promise<RawAnswer> {
    return this.send('POST', '', { metadata: { name, ...more }, spec });
  }

  apply(name: string, manager: string, spec: JsonObject, labels: JsonObject = {}): Promise<RawAnswer> {
    const metadata = Object.keys(labels).length === 0 ? { name } : { name, labels };
    return this.send('PATCH', `/${name}?fieldManager=${manager}`, { ...TYPE, metadata, spec }, APPLY);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}

export function metadata(answer: RawAnswer): JsonObject {
  return (answer.json?.['metadata'] ?? {}) as JsonObject; // every answer has it
}
