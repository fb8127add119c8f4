/**
 * `keys bootstrap`: creates the first key. It sends the request to the running API as the local administrator. If no API runs, it starts a
 * temporary one over the same store, on a random port.
 */

import type { Command } from 'commander';
import {
  ApiClient,
  type ApiConnection,
  NoServerError,
  localConnection,
  managementConfig,
} from './keys-connection.ts';
import { newKeyText, type KeyFormat, printSecret } from './keys-options.ts';
import type { ManagementConfig } from '../../access-keys/config.ts';
import { TerminalError } from '../../base/errors.ts';
import { isNotFound, StatusError } from '../../kube/status-error.ts';
import { FIRST_KEY_NAME, firstKey } from '../../access-keys/credentials/first-key.ts';
import { startManagementApi, type ManagementApi } from '../../access-keys/management-api.ts';
import { createLogger } from '../../base/logger.ts';
import { programParts } from '../installation.ts';
import { tell } from '../output/terminal.ts';

import { summary } from './keys-create.ts';

export interface BootstrapOptions {
  readonly output: KeyFormat;
  readonly server?: string;
  readonly rotate?: true;
}

/** Rejects with `TerminalError` or `StatusError`. */
export async function bootstrap(command: Command, options: BootstrapOptions): Promise<number> {
  const { management, level } = await managementConfig(command);
  const running = await runningApi(management, options.server);
  if (running !== undefined) return printFirstKey(running, management, options);
  if (management.store.driver === 'memory') {
    throw new TerminalError(
      'managementApi.store.driver is memory, and the API does not run: start it first (api --config FILE), then bootstrap',
    );
  }
  await using api = await startTemporaryApi(management, level);
  return await printFirstKey(await localConnection(management, api.url), management, options);
}

async function startTemporaryApi(
  management: ManagementConfig,
  level: 'error' | 'silent',
): Promise<ManagementApi> {
  const options = {
    // Not the configured address: another machine may serve the API there.
    config: { ...management, bindAddress: '127.0.0.1:0', bootstrapKeyFile: '' },
    ...programParts(),
    logger: await createLogger({ level, format: 'json' }),
    signal: new AbortController().signal,
  };
  try {
    return await startManagementApi(options);
  } catch (error) {
    if (!(error instanceof TerminalError) || management.store.driver !== 'sqlite') throw error;
    const hint = 'if the running API holds it, give the address that the API printed with --server';
    throw new TerminalError(`${error.message}; ${hint}`, { cause: error });
  }
}

/** The connection to the running API; undefined if there is none. */
async function runningApi(
  management: ManagementConfig,
  server: string | undefined,
): Promise<ApiConnection | undefined> {
  let connection: ApiConnection;
  try {
    connection = await localConnection(management, server);
  } catch (error) {
    // Without a master key, a certificate or a fixed port the address of a running API is unknown.
    if (server !== undefined) throw error;
    return undefined;
  }
  await using client = new ApiClient(connection);
  try {
    await client.send({ method: 'GET', path: `ownedaccesskeys/${FIRST_KEY_NAME}` });
  } catch (error) {
    if (isNotFound(error)) return connection;
    if (error instanceof NoServerError && server === undefined) return undefined;
    throw error;
  }
  return connection;
}

async function printFirstKey(
  connection: ApiConnection,
  management: ManagementConfig,
  { output, rotate, server }: BootstrapOptions,
): Promise<number> {
  await using client = new ApiClient(connection);
  if (rotate) await removeFirstKey(client);
  const body = firstKey(management.maxTtl);
  const created = await client
    .send({ method: 'POST', path: 'ownedaccesskeys', body })
    .catch((error: unknown) => {
      if (error instanceof StatusError && error.code === 409) throw alreadyThere(management);
      throw error;
    });
  // A kubeconfig must have the address of the API, not that of the temporary one.
  const isTemporary = server === undefined && !connection.server.endsWith(portOf(management));
  const lasting = isTemporary ? { ...connection, server: management.issuer } : connection;
  printSecret(newKeyText(created, output, lasting));
  tell(summary(created));
  return 0;
}

function portOf({ bindAddress }: ManagementConfig): string {
  return bindAddress.slice(bindAddress.lastIndexOf(':'));
}

async function removeFirstKey(client: ApiClient): Promise<void> {
  try {
    await client.send({ method: 'DELETE', path: `ownedaccesskeys/${FIRST_KEY_NAME}` });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function alreadyThere({ bootstrapKeyFile }: ManagementConfig): TerminalError {
  const where = bootstrapKeyFile === '' ? 'was printed when it was created' : `is in ${bootstrapKeyFile}`;
  return new TerminalError(
    `the first key exists already (${FIRST_KEY_NAME}) and ${where}; if it is lost, keys bootstrap --rotate revokes it and creates another`,
  );
}
