/** How a new key is shown: the only time that it is. */

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { stringify } from 'yaml';
import { TerminalError } from '../../base/errors.ts';
import { isJsonObject, ownValue, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ApiConnection } from './api-client.ts';

export const KEY_FORMATS = ['key', 'kubeconfig', 'json', 'yaml'] as const;
export type KeyFormat = (typeof KEY_FORMATS)[number];

/** Text for standard output. `object` is the answer to the create. */
export function newKeyText(object: JsonObject, format: KeyFormat, connection: ApiConnection): string {
  switch (format) {
    case 'key':
      return `${keyOf(object)}\n`;
    case 'json':
      return `${JSON.stringify(object, null, 2)}\n`;
    case 'yaml':
      return stringify(object);
    case 'kubeconfig':
      return stringify(kubeconfigOf(object, connection));
  }
}

export function memberOf(object: JsonObject, ...path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const key of path) value = isJsonObject(value) ? ownValue(value, key) : undefined;
  return value;
}

/** A member as text, '' when it is none. */
export function textIn(object: JsonObject, ...path: readonly string[]): string {
  const value = memberOf(object, ...path);
  return typeof value === 'string' ? value : '';
}

function keyOf(object: JsonObject): string {
  const key = textIn(object, 'spec', 'key');
  if (key === '') throw new TerminalError('the server made the key and did not show it');
  return key;
}

/** For kubectl: the server, whom to trust, and the key. */
function kubeconfigOf(object: JsonObject, { server, trust }: ApiConnection): JsonObject {
  const name = textIn(object, 'metadata', 'name');
  const pem = trust.kind === 'certificate' ? trust.certificate : trust.ca;
  const authority =
    pem === undefined ? {} : { 'certificate-authority-data': Buffer.from(pem).toString('base64') };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'endpoint-syncer', cluster: { server, ...authority, ...serverName(server, trust) } }],
    users: [{ name, user: { token: keyOf(object) } }],
    contexts: [{ name, context: { cluster: 'endpoint-syncer', user: name } }],
    'current-context': name,
  };
}

/** A given certificate may be for another name than that of this machine: kubectl must ask for one that is in it. */
function serverName(server: string, trust: ApiConnection['trust']): JsonObject {
  if (trust.kind !== 'certificate') return {};
  const certificate = new X509Certificate(trust.certificate);
  const host = new URL(server).hostname.replaceAll(/[[\]]/gu, '');
  const match = isIP(host) > 0 ? certificate.checkIP(host) : certificate.checkHost(host);
  if (match !== undefined) return {};
  const [, name] = /DNS:([a-z0-9][a-z0-9.-]*)/iu.exec(certificate.subjectAltName ?? '') ?? [];
  return name === undefined ? {} : { 'tls-server-name': name };
}
