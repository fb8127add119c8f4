/**
 * `keys token`: a token for a connected cluster, as text, as the answer of a client-go exec plugin, or as a kubeconfig whose user is this very
 * command. With the kubeconfig kubectl goes on past the end of each token.
 */

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

/** Rejects with `StatusError` when the server refuses. */
export async function printToken(connection: ApiConnection, options: TokenOptions): Promise<number> {
  const warn = (text: string): void => void process.stderr.write(`warning: ${text}\n`);
  await using client = new ApiClient(connection, warn);
  const key = await connection.token();
  if (!key.startsWith('local_'))
    return await print(client, key, { ...connection, token: () => key }, options);
  throw new TerminalError(
    'a token is issued to an access key: give one with --token-file, --kubeconfig, --token or ENDPOINT_SYNCER_TOKEN',
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
      // Fails here, not in kubectl, where the key or the scope is wrong.
      const { token } = await issue();
      const user = claimsOf(token).name;
      printSecret(stringify(tokenKubeconfig({ connection, key, user }, options)));
      if (options.clusterServer === undefined) {
        process.stderr.write(
          'no cluster is in this kubeconfig: give --cluster-server, or kubectl --server\n',
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
  const body = { apiVersion: 'management.platform.sh/v1', kind: 'DirectClusterEndpointToken', spec };
  const created = await client.send({ method: 'POST', path: 'directclusterendpointtokens', body });
  const token = textIn(created, 'status', 'token');
  if (token === '') throw new TerminalError('the server issued a token and did not show it');
  return { token, renewAtMs: nowMs + renewAfterMs(claimsOf(token).lifeSeconds) };
}

/** Shortly before its end, by the clock of this machine, whatever that of the server says. */
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
