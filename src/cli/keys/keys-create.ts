/** `keys create` and `keys rotate`: the commands that print a new secret. */

import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { MANAGEMENT_API_VERSION } from '../../access-keys/identity.ts';
import { textAt, valueAt, type JsonObject } from '../../base/json.ts';
import {
  ApiClient,
  type ApiConnection,
  NoServerError,
  localConnection,
  managementConfig,
} from './keys-connection.ts';
import {
  newKeyText,
  type KeyFormat,
  printSecret,
  addScopeOptions,
  collected,
  scopeIn,
  type ScopeOptions,
  DAY_SECONDS,
  secondsIn,
} from './keys-options.ts';
import type { ManagementConfig } from '../../access-keys/config.ts';
import { TerminalError } from '../../base/errors.ts';
import { isNotFound, StatusError } from '../../kube/status-error.ts';
import { FIRST_KEY_NAME, firstKey } from '../../access-keys/credentials/first-key.ts';
import { startManagementApi, type ManagementApi } from '../../access-keys/management-api.ts';
import { createLogger } from '../../base/logger.ts';
import { programParts } from '../installation.ts';
import { tell } from '../output/terminal.ts';

interface CreateOptions extends ScopeOptions {
  readonly output: KeyFormat;
  readonly name?: string;
  readonly generateName: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly user?: string;
  readonly team?: string;
  readonly subject?: string;
  readonly group: readonly string[];
  readonly ttl: number;
  readonly ttlAfterLastActivity?: true;
}

const SCOPE_GROUP = 'Scope (default: no restriction; options may be repeated):';

export function addCreateOptions(command: Command): void {
  const lifetime = 'lifetime of the key, such as 90d or 720h; 0 means that it never expires';
  const ttl = new Option('--ttl <duration>', lifetime);
  command
    .option('--name <name>', 'name of the key; generated if omitted')
    .option('--generate-name <prefix>', 'prefix of the generated name', 'key-')
    .option('--display-name <text>', 'name shown in lists; default: the name')
    .option('--description <text>', 'what the key is used for')
    .option('--user <user>', 'user of the key')
    .option('--team <team>', 'team of the key; its members can read and change the key')
    .option('--subject <subject>', 'subject of the key, if it is neither a user nor a team')
    .option('--group <group>', 'extra group; may be repeated', collected, [])
    .addOption(ttl.argParser(secondsIn).default(30 * DAY_SECONDS, '30d'))
    .option('--ttl-after-last-activity', 'start the lifetime after the last use of the key');
  addScopeOptions(command, SCOPE_GROUP);
}

/** Prints the key. */
export async function createKey(client: ApiClient, options: CreateOptions): Promise<number> {
  const created = await client.send({ method: 'POST', path: 'ownedaccesskeys', body: keyObject(options) });
  printSecret(newKeyText(created, options.output, client.connection));
  tell(summary(created));
  return 0;
}

function keyObject(options: CreateOptions): JsonObject {
  const { name, generateName, description, group, ttl } = options;
  const scope = scopeIn(options);
  return {
    apiVersion: MANAGEMENT_API_VERSION,
    kind: 'OwnedAccessKey',
    metadata: name === undefined ? { generateName } : { name },
    spec: {
      displayName: options.displayName ?? name ?? `created by ${userInfo().username}`,
      ...(description !== undefined && { description }),
      ...ownerOf(options),
      type: 'User',
      ttl,
      ...(group.length > 0 && { groups: [...group] }),
      ...(options.ttlAfterLastActivity && { ttlAfterLastActivity: true }),
      ...(scope !== undefined && { scope }),
    },
  };
}

function ownerOf({ user, team, subject }: CreateOptions): JsonObject {
  return {
    ...(user !== undefined && { user }),
    ...(team !== undefined && { team }),
    ...(subject !== undefined && { subject }),
  };
}

export function namesOneOwner(options: CreateOptions): boolean {
  return Object.keys(ownerOf(options)).length === 1;
}

/** A summary of the key without its secret. */
function summary(created: JsonObject): string {
  const name = textAt(created, 'metadata', 'name');
  const ttl = valueAt(created, ['spec', 'ttl']);
  const owner = ['user', 'team', 'subject']
    .map((field) => [field, textAt(created, 'spec', field)] as const)
    .find(([, value]) => value !== '');
  const life = typeof ttl === 'number' && ttl > 0 ? `expires ${endOf(created, ttl)}` : 'never expires';
  return `key ${name} of ${owner?.join(' ') ?? 'no subject'}, ${life}; it is not shown again`;
}

function endOf(created: JsonObject, ttlSeconds: number): string {
  const madeAt = Date.parse(textAt(created, 'metadata', 'creationTimestamp'));
  const from = Number.isNaN(madeAt) ? Date.now() : madeAt;
  const isSliding = valueAt(created, ['spec', 'ttlAfterLastActivity']) === true;
  const end = new Date(from + ttlSeconds * 1000);
  if (Number.isNaN(end.getTime())) return 'after the year 275760';
  return `${inSeconds(end)}${isSliding ? ' unless it is used' : ''}`;
}

function inSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/u, 'Z');
}

interface RotateOptions {
  readonly output: KeyFormat;
  /** Seconds. */
  readonly overlap: number;
}

/** Prints the new secret. */
export async function rotateKey(
  client: ApiClient,
  name: string,
  { output, overlap }: RotateOptions,
): Promise<number> {
  const nowMs = Date.now();
  const rotated = await client.send({
    method: 'POST',
    path: `ownedaccesskeys/${encodeURIComponent(name)}/rotate`,
    body: { overlapSeconds: overlap },
  });
  printSecret(newKeyText(rotated, output, client.connection));
  const until = inSeconds(new Date(nowMs + overlap * 1000));
  const old = overlap === 0 ? 'the old one no longer works' : `the old one works until ${until}`;
  tell(`key ${name} has a new secret, which is not shown again; ${old}`);
  return 0;
}

// `keys bootstrap`: creates the first key. It sends the request to the running API as the local administrator. If no API runs, it starts a
// temporary one over the same store, on a random port.

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
