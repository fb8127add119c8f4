/**
 * `keys bootstrap`: the first key. It asks the running API, as whoever can read its master key; where none runs, it starts one for the
 * moment, on a port that nobody knows, over the same store.
 */

import type { Command } from 'commander';
import type { ManagementConfig } from '../../config/types.ts';
import { TerminalError } from '../../base/errors.ts';
import { isNotFound, StatusError } from '../../kube/status-error.ts';
import { systemClock } from '../../base/clock.ts';
import { systemRandom } from '../../base/random.ts';
import { FIRST_KEY_NAME, firstKey } from '../../access-keys/bootstrap/first-key.ts';
import { startManagementApi, type ManagementApi } from '../../access-keys/management-api.ts';
import { createLogger } from '../../base/logger.ts';
import { ApiClient, NoServerError, type ApiConnection } from './api-client.ts';
import { localConnection, managementConfig } from './keys-connection.ts';
import { summary } from './keys-create.ts';
import { newKeyText, type KeyFormat } from './keys-output.ts';
import { printSecret } from './secret-output.ts';
import { packageVersion } from '../version.ts';

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
  await using api = await startForAMoment(management, level);
  return await printFirstKey(await localConnection(management, api.url), management, options);
}

async function startForAMoment(
  management: ManagementConfig,
  level: 'error' | 'silent',
): Promise<ManagementApi> {
  const options = {
    // The API may run elsewhere with the same configuration: whoever is not it must not look like it.
    config: { ...management, bindAddress: '127.0.0.1:0', bootstrapKeyFile: '' },
    clock: systemClock,
    random: systemRandom,
    logger: await createLogger({ level, format: 'json' }),
    version: packageVersion(),
    signal: new AbortController().signal,
  };
  try {
    return await startManagementApi(options);
  } catch (error) {
    if (!(error instanceof TerminalError) || management.store.driver !== 'sqlite') throw error;
    const hint = 'If it is the API that runs, name the address that it printed with --server';
    throw new TerminalError(`${error.message}. ${hint}`, { cause: error });
  }
}

/** The connection to the API when it answers; undefined when there is none. */
async function runningApi(
  management: ManagementConfig,
  server: string | undefined,
): Promise<ApiConnection | undefined> {
  let connection: ApiConnection;
  try {
    connection = await localConnection(management, server);
  } catch (error) {
    // No master key, no certificate, no fixed port: it has never run here, or nobody can know where.
    if (server !== undefined) throw error;
    return undefined;
  }
  await using client = new ApiClient(connection, () => undefined);
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
  await using client = new ApiClient(connection, (text) => process.stderr.write(`warning: ${text}\n`));
  if (rotate) await removeFirstKey(client);
  const body = firstKey(management.maxTtlMs);
  const created = await client
    .send({ method: 'POST', path: 'ownedaccesskeys', body })
    .catch((error: unknown) => {
      if (error instanceof StatusError && error.code === 409) throw alreadyThere(management);
      throw error;
    });
  // Where a port was taken for the moment, the address of everyday life is what a kubeconfig must have.
  const isMomentary = server === undefined && !connection.server.endsWith(portOf(management));
  const lasting = isMomentary ? { ...connection, server: management.issuer } : connection;
  printSecret(newKeyText(created, output, lasting));
  process.stderr.write(`${summary(created)}\n`);
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
  const where = bootstrapKeyFile === '' ? 'was printed when it was made' : `is in ${bootstrapKeyFile}`;
  return new TerminalError(
    `the first key exists already (${FIRST_KEY_NAME}) and ${where}. Is it lost? keys bootstrap --rotate revokes it and prints another`,
  );
}
