/**
 * `keys token`: a token for a connected cluster, as text, as the output of a client-go exec plugin, or as a kubeconfig whose user runs this
 * command as an exec plugin, so that kubectl gets a new token when one expires.
 */

import { MANAGEMENT_API_VERSION } from '../../access-keys/api-group.ts';
import { stringify } from 'yaml';
import { TerminalError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { ApiClient, type ApiConnection } from './api-client.ts';
import { textIn } from './keys-output.ts';
import { scopeIn } from './keys-scope.ts';
import type { TokenOptions } from './keys-token-options.ts';
import { tokenKubeconfig } from './token-kubeconfig.ts';
import { printSecret } from './secret-output.ts';
import { claimsOf, TokenCache, type IssuedToken } from './token-cache.ts';

/** Rejects with `StatusError` when the server denies the request. */
export async function printToken(connection: ApiConnection, options: TokenOptions): Promise<number> {
  const warn = (text: string): void => void process.stderr.write(`warning: ${text}\n`);
  await using client = new ApiClient(connection, warn);
  const key = await connection.token();
  if (!key.startsWith('local_'))
    return await print(client, key, { ...connection, token: () => key }, options);
  throw new TerminalError(
    'a token belongs to an access key: give one with --token-file, --kubeconfig, --token or ENDPOINT_SYNCER_TOKEN',
  );
}

async function print(
  client: ApiClient,
  key: string,
  connection: ApiConnection,
  options: TokenOptions,
): Promise<number> {
  const spec = specOf(options);
  const issue = (): Promise<IssuedToken> => issueToken(client, spec);
  switch (options.output) {
    case 'token':
      printSecret(`${(await issue()).token}\n`);
      return 0;
    case 'exec-credential': {
      const cache = new TokenCache(process.env);
      const request = JSON.stringify([connection.server, key, spec]);
      const issued = (options.cache ? cache.read(request, Date.now()) : undefined) ?? (await issue());
      cache.write(request, issued);
      printSecret(`${JSON.stringify(execCredential(issued))}\n`);
      return 0;
    }
    case 'kubeconfig': {
      // An invalid key or scope fails here instead of in kubectl.
      const { token } = await issue();
      const user = claimsOf(token).name;
      printSecret(stringify(tokenKubeconfig({ connection, key, user }, options)));
      if (options.clusterServer === undefined) {
        process.stderr.write(
          'this kubeconfig has no cluster: give --cluster-server here, or --server to kubectl\n',
        );
      }
      return 0;
    }
  }
}

function specOf(options: TokenOptions): JsonObject {
  const scope = scopeIn(options);
  return {
    ...(options.ttl === undefined ? {} : { ttl: options.ttl }),
    ...(scope === undefined ? {} : { scope }),
  };
}

async function issueToken(client: ApiClient, spec: JsonObject): Promise<IssuedToken> {
  const nowMs = Date.now();
  const body = { apiVersion: MANAGEMENT_API_VERSION, kind: 'DirectClusterEndpointToken', spec };
  const created = await client.send({ method: 'POST', path: 'directclusterendpointtokens', body });
  const token = textIn(created, 'status', 'token');
  if (token === '') throw new TerminalError('the response of the server does not contain the token');
  return { token, renewAtMs: nowMs + renewAfterMs(claimsOf(token).lifeSeconds) };
}

/** Shortly before the expiry, by the clock of this machine, which may differ from that of the server. */
function renewAfterMs(lifeSeconds: number): number {
  return (lifeSeconds - Math.min(60, lifeSeconds / 5)) * 1000;
}

function execCredential({ token, renewAtMs }: IssuedToken): JsonObject {
  const expirationTimestamp = `${new Date(renewAtMs).toISOString().slice(0, 19)}Z`;
  return {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { expirationTimestamp, token },
  };
}
