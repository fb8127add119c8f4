/** Prints a new secret in one of the output formats. */

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { fchmodSync, fstatSync } from 'node:fs';
import { stringify } from 'yaml';
import { TerminalError, messageOf } from '../../base/errors.ts';
import { textAt, type JsonObject } from '../../base/json.ts';
import type { ApiConnection } from './api-client.ts';

export const KEY_FORMATS = ['key', 'kubeconfig', 'json', 'yaml'] as const;
export type KeyFormat = (typeof KEY_FORMATS)[number];

/** Text for standard output. `object` is the response with the secret. */
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

function keyOf(object: JsonObject): string {
  const key = textAt(object, 'spec', 'key');
  if (key === '') throw new TerminalError('the response of the server does not contain the secret');
  return key;
}

/** A kubeconfig with the server, its authority and the key. */
function kubeconfigOf(object: JsonObject, connection: ApiConnection): JsonObject {
  const { server, trust } = connection;
  const name = textAt(object, 'metadata', 'name');
  const pem = trust.kind === 'certificate' ? trust.certificate : trust.ca;
  const authority =
    pem === undefined ? {} : { 'certificate-authority-data': Buffer.from(pem).toString('base64') };
  const serverName = serverNameOf(connection);
  const verifiedName = serverName === undefined ? {} : { 'tls-server-name': serverName };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'endpoint-syncer', cluster: { server, ...authority, ...verifiedName } }],
    users: [{ name, user: { token: keyOf(object) } }],
    contexts: [{ name, context: { cluster: 'endpoint-syncer', user: name } }],
    'current-context': name,
  };
}

/** The name to verify in place of the host of the URL: as chosen, or one that a configured certificate has if it lacks the host. */
export function serverNameOf({ server, trust }: ApiConnection): string | undefined {
  if (trust.kind === 'authorities') return trust.serverName;
  const certificate = new X509Certificate(trust.certificate);
  const host = new URL(server).hostname.replaceAll(/[[\]]/gu, '');
  const match = isIP(host) > 0 ? certificate.checkIP(host) : certificate.checkHost(host);
  if (match !== undefined) return undefined;
  return /DNS:([a-z0-9][a-z0-9.-]*)/iu.exec(certificate.subjectAltName ?? '')?.[1];
}

// Prints secrets: a file that standard output is redirected to is restricted to its owner before the secret is written.

interface SecretOutput {
  readonly fd: number;
  write(text: string): unknown;
}

const GROUP_AND_OTHERS = 0o077;

export function printSecret(text: string, output: SecretOutput = process.stdout): void {
  restrictToOwner(output.fd);
  output.write(text);
}

/** Does nothing for a terminal or a pipe. */
function restrictToOwner(fd: number): void {
  const stat = fstatSync(fd);
  if (!stat.isFile() || (stat.mode & GROUP_AND_OTHERS) === 0) return;
  try {
    fchmodSync(fd, stat.mode & ~GROUP_AND_OTHERS);
  } catch (error) {
    const why = messageOf(error);
    process.stderr.write(
      `warning: other users can read the file with this secret, and its mode cannot be changed: ${why}\n`,
    );
  }
}
