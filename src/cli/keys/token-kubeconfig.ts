/** A kubeconfig for a connected cluster, whose user runs `keys token` as an exec plugin. */

import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { TerminalError, messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ApiConnection } from './api-client.ts';
import { serverNameOf } from './keys-output.ts';
import { scopeArguments } from './keys-scope.ts';
import type { TokenOptions } from './keys-token-options.ts';

interface TokenSource {
  readonly connection: ApiConnection;
  readonly key: string;
  /** Name of the access key. */
  readonly user: string;
}

export function tokenKubeconfig(source: TokenSource, options: TokenOptions): JsonObject {
  const { clusterServer, clusterCertificateAuthority, clusterName } = options;
  const authority =
    clusterCertificateAuthority === undefined
      ? {}
      : { 'certificate-authority-data': authorityData(clusterCertificateAuthority) };
  const clusters =
    clusterServer === undefined
      ? []
      : [{ name: clusterName, cluster: { server: clusterServer, ...authority } }];
  const { user } = source;
  const context = { ...(clusterServer === undefined ? {} : { cluster: clusterName }), user };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters,
    users: [{ name: user, user: { exec: execConfig(source, options) } }],
    contexts: [{ name: clusterName, context }],
    'current-context': clusterName,
  };
}

function execConfig({ connection, key }: TokenSource, options: TokenOptions): JsonObject {
  const { ttl } = options;
  const { command, programArguments } = pluginCommand();
  const isKeyNamed = usesKubeconfig(options) || options.tokenFile !== undefined;
  return {
    apiVersion: 'client.authentication.k8s.io/v1',
    command,
    args: [
      ...programArguments,
      'keys',
      'token',
      '-o',
      'exec-credential',
      ...connectionArguments(connection, options),
      ...(ttl === undefined ? [] : ['--ttl', ttl === 0 ? '0' : `${ttl}s`]),
      ...scopeArguments(options),
    ],
    env: [
      // The configuration of another API on this machine must not be used.
      { name: 'ENDPOINT_SYNCER_CONFIG', value: '' },
      ...(isKeyNamed ? [] : [{ name: 'ENDPOINT_SYNCER_TOKEN', value: key }]),
    ],
    installHint: 'endpoint-syncer issues the tokens of this cluster: npm install --global endpoint-syncer',
    interactiveMode: 'Never',
    provideClusterInfo: false,
  };
}

const COMMAND = 'endpoint-syncer';

/** The installed command; without one in the PATH, such as in the image, this program by its path. */
function pluginCommand(): { readonly command: string; readonly programArguments: readonly string[] } {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  if (folders.some((folder) => existsSync(join(folder, COMMAND)))) {
    return { command: COMMAND, programArguments: [] };
  }
  return { command: process.execPath, programArguments: [resolve(process.argv[1] ?? '')] };
}

function connectionArguments(connection: ApiConnection, options: TokenOptions): string[] {
  const { server, trust } = connection;
  const { kubeconfig, context } = options;
  if (kubeconfig !== undefined && usesKubeconfig(options)) {
    return ['--kubeconfig', resolve(kubeconfig), ...(context === undefined ? [] : ['--context', context])];
  }
  const pem = trust.kind === 'certificate' ? trust.certificate : trust.ca;
  const serverName = serverNameOf(connection);
  return [
    '--server',
    server,
    ...(pem === undefined ? [] : ['--certificate-authority-data', Buffer.from(pem).toString('base64')]),
    ...(serverName === undefined ? [] : ['--tls-server-name', serverName]),
    ...(options.tokenFile === undefined ? [] : ['--token-file', resolve(options.tokenFile)]),
  ];
}

/** The plugin reads the kubeconfig too, unless another flag overrides a part of it. */
function usesKubeconfig({ kubeconfig, server, token, tokenFile, ...authority }: TokenOptions): boolean {
  const { certificateAuthority, certificateAuthorityData, tlsServerName } = authority;
  const overrides = [server, token, tokenFile, certificateAuthority, certificateAuthorityData, tlsServerName];
  return kubeconfig !== undefined && overrides.every((value) => value === undefined);
}

function authorityData(file: string): string {
  try {
    return readFileSync(file).toString('base64');
  } catch (error) {
    const why = messageOf(error);
    throw new TerminalError(`--cluster-certificate-authority cannot be read: ${why}`, { cause: error });
  }
}
