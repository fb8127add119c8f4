/** The API server of the cluster that this process runs in, as the Pod's service account. */

import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { ServerAccess } from '../access.ts';
import { createCredentials, readTextFile } from './credentials.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a kubelet puts the token, the CA and the namespace. */
export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export function isInCluster(env: Environment, folder: string): boolean {
  return Boolean(env['KUBERNETES_SERVICE_HOST']) && existsSync(join(folder, 'token'));
}

/** Throws `TerminalError` when a file of the service account cannot be read. */
export function inClusterAccess(env: Environment, clock: Clock, folder: string): ServerAccess {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const source = 'the service account of this Pod';
  const caFile = join(folder, 'ca.crt');
  readTextFile(caFile, 'ca.crt', source);
  const namespaceFile = join(folder, 'namespace');
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : '',
    description: source,
    credentials: createCredentials(
      { name: 'service-account', source, user: { tokenFile: join(folder, 'token') }, cluster: {} },
      clock,
    ),
    trust: () => ({ ca: readFileSync(caFile), isUnverified: false }),
  };
}
