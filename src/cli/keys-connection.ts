/** Where the key and token API is and who asks, from the options of a `keys` command. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseBindAddress } from '../config/bind-address.ts';
import { configFile, loadConfig } from '../config/load.ts';
import type { ManagementConfig } from '../config/types.ts';
import { TerminalError } from '../kube/errors.ts';
import { systemClock } from '../lib/clock.ts';
import { openLocalAdministrator } from '../management/bootstrap/local-administrator.ts';
import type { ApiConnection, ServerTrust } from './api-client.ts';
import { addConfigOptions, loaderInput, managementInput } from './config-options.ts';

export interface ConnectionOptions {
  readonly server?: string;
  readonly certificateAuthority?: string;
  readonly token?: string;
}

const HELP_GROUP = 'Connection:';
/** Of the configuration only what tells where the API is. */
const FIELDS = ['bindAddress', 'dataDir', 'tls.certFile', 'tls.keyFile'];

export function addConnectionOptions(command: Command): void {
  const add = (flags: string, help: string): void => {
    command.addOption(new Option(flags, help).helpGroup(HELP_GROUP));
  };
  command.addOption(serverOption('address of the API; else that of the configuration').helpGroup(HELP_GROUP));
  add(
    '--certificate-authority <file>',
    'PEM certificates that the server must show one of; else ca.crt in dataDir',
  );
  add(
    '--token <key>',
    'access key to ask with; else ENDPOINT_SYNCER_TOKEN, else, next to the API, its master key in dataDir',
  );
  addConfigOptions(command, FIELDS);
}

export function serverOption(help: string): Option {
  return new Option('-s, --server <url>', help).argParser((url) => {
    if (url.startsWith('https://') && URL.canParse(url)) return url;
    throw new InvalidArgumentError('It must be an https:// URL such as https://127.0.0.1:8443.');
  });
}

/** Rejects with a `ConfigError`, or with a `TerminalError` when there is nothing to ask with. */
export async function connectionFor(command: Command): Promise<ApiConnection> {
  const options: ConnectionOptions = command.opts();
  const { management } = await managementConfig(command);
  const isLocal = options.server === undefined || configFile(loaderInput(command)) !== undefined;
  const trust = trustFor(options, isLocal ? management : undefined);
  const server = options.server ?? localServer(management);
  const token = options.token ?? process.env['ENDPOINT_SYNCER_TOKEN'] ?? '';
  if (token !== '') return { server, trust, token: () => token };
  if (!isLocal)
    throw new TerminalError('there is no access key to ask with: give --token, or set ENDPOINT_SYNCER_TOKEN');
  return { server, trust, token: await localToken(management) };
}

/** The configuration of the API; that of a virtual cluster is not needed. */
export async function managementConfig(
  command: Command,
): Promise<{ readonly management: ManagementConfig; readonly level: 'error' | 'silent' }> {
  const { config } = await loadConfig(managementInput(command));
  return { management: config.management, level: config.log.level === 'silent' ? 'silent' : 'error' };
}

/** The connection that whoever can read the API's files has. */
export async function localConnection(
  management: ManagementConfig,
  server: string | undefined,
): Promise<ApiConnection> {
  return {
    server: server ?? localServer(management),
    trust: trustFor({}, management),
    token: await localToken(management),
  };
}

async function localToken({ dataDir }: ManagementConfig): Promise<() => string> {
  const administrator = await openLocalAdministrator(dataDir, systemClock);
  if (administrator !== undefined) return () => administrator.credential();
  throw new TerminalError(
    `there is no access key to ask with, and no master key in ${dataDir}: give --token or set ENDPOINT_SYNCER_TOKEN, ` +
      'or run this where the API runs with its --config',
  );
}

/** An address that listens everywhere is reached on this machine. */
function localServer({ bindAddress }: ManagementConfig): string {
  const { host = '', port = 0 } = parseBindAddress(bindAddress) ?? {};
  if (port === 0) {
    throw new TerminalError(
      'managementApi.bindAddress lets the system choose a port: name the address that the API printed with --server',
    );
  }
  const name = host === '' || host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `https://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function trustFor(
  { certificateAuthority }: ConnectionOptions,
  management: ManagementConfig | undefined,
): ServerTrust {
  if (certificateAuthority !== undefined) {
    const ca = readText(certificateAuthority, '--certificate-authority');
    if (ca.includes('-----BEGIN CERTIFICATE-----')) return { kind: 'authorities', ca };
    throw new TerminalError(
      `--certificate-authority ${certificateAuthority} holds no PEM certificate: name a copy of ca.crt from dataDir of the API`,
    );
  }
  if (management === undefined) return { kind: 'authorities', ca: undefined };
  const { tls, dataDir } = management;
  if (tls.certFile !== '') {
    return { kind: 'certificate', certificate: readText(tls.certFile, 'managementApi.tls.certFile') };
  }
  return { kind: 'authorities', ca: readText(join(dataDir, 'ca.crt'), 'the certificate of the API') };
}

function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TerminalError(
      `${what} cannot be read: ${why}. The API writes ca.crt into its dataDir when it starts; name a copy with --certificate-authority`,
      { cause: error },
    );
  }
}
