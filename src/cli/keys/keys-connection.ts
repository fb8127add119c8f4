/** The connection of a `keys` command to the key and token API, from its options. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { parseBindAddress } from '../../base/bind-address.ts';
import { configFile, loadConfig } from '../../config/load.ts';
import type { ManagementConfig } from '../../config/types.ts';
import { TerminalError } from '../../base/errors.ts';
import { systemClock } from '../../base/clock.ts';
import { openLocalAdministrator } from '../../access-keys/bootstrap/local-administrator.ts';
import type { ApiConnection, ServerTrust } from './api-client.ts';
import { httpsUrl } from './https-url.ts';
import { addConfigOptions, loaderInput, managementInput } from '../configuration/config-options.ts';

export interface ConnectionOptions {
  readonly server?: string;
  readonly certificateAuthority?: string;
  readonly certificateAuthorityData?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly kubeconfig?: string;
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
    'PEM certificates that the server is verified with; else ca.crt in dataDir',
  );
  add('--certificate-authority-data <base64>', 'the same, as text in base64');
  add(
    '--token <key>',
    'access key; else ENDPOINT_SYNCER_TOKEN, else, on the machine of the API, its master key',
  );
  add(
    '--token-file <file>',
    'file with the access key, which other processes cannot see as they see --token',
  );
  add('--kubeconfig <file>', 'kubeconfig of the API, for its address, its authority and the access key');
  addConfigOptions(command, FIELDS);
}

export function serverOption(help: string): Option {
  return new Option('-s, --server <url>', help).argParser(httpsUrl);
}

/** Rejects with a `ConfigError`, or with a `TerminalError` when there is nothing to ask with. */
export async function connectionFor(command: Command): Promise<ApiConnection> {
  const options: ConnectionOptions = command.opts();
  const token = keyOf(options);
  if (options.kubeconfig !== undefined) return kubeconfigConnection(options.kubeconfig, options, token);
  const hasConfig = configFile(loaderInput(command)) !== undefined;
  const { management } = await managementConfig(command);
  const isLocal = options.server === undefined || hasConfig;
  if (options.server === undefined && !hasConfig) refuseUnknownPlace(management);
  const trust = trustFor(options, isLocal ? management : undefined);
  const server = options.server ?? localServer(management);
  if (token !== '') return { server, trust, token: () => token };
  if (!isLocal) {
    throw new TerminalError(
      'no access key: give --token-file, --token or --kubeconfig, or set ENDPOINT_SYNCER_TOKEN',
    );
  }
  return { server, trust, token: await localToken(management) };
}

/** '' where none is given. */
function keyOf({ token, tokenFile }: ConnectionOptions): string {
  if (token !== undefined) return token;
  if (tokenFile === undefined) return process.env['ENDPOINT_SYNCER_TOKEN'] ?? '';
  const key = readText(tokenFile, '--token-file').trim();
  if (key === '') throw new TerminalError(`--token-file ${tokenFile} is empty`);
  return key;
}

/** Without a word about where the API is, it must be here: no file of another machine is named that is not there. */
function refuseUnknownPlace({ dataDir, tls }: ManagementConfig): void {
  if (tls.certFile !== '' || existsSync(join(dataDir, 'ca.crt'))) return;
  throw new TerminalError(
    'no address of the API: give --server URL and an access key (--token-file, --token or ENDPOINT_SYNCER_TOKEN), or --kubeconfig FILE; ' +
      'on the machine where the API runs, --config FILE is enough',
  );
}

async function kubeconfigConnection(
  file: string,
  options: ConnectionOptions,
  token: string,
): Promise<ApiConnection> {
  const { loadClusterAccess } = await import('../../kube/credentials/kubeconfig.ts');
  const access = loadClusterAccess({ kubeconfig: file, context: '' }, { clock: systemClock });
  const { ca, serverName, isUnverified } = await access.trust();
  if (isUnverified) {
    throw new TerminalError(
      `${file} does not verify the server: remove insecure-skip-tls-verify and name its authority`,
    );
  }
  const given = authorityIn(options);
  const authority = given ?? ca?.toString();
  return {
    server: options.server ?? access.server,
    trust: {
      kind: 'authorities',
      ca: authority,
      ...(serverName === undefined || options.server !== undefined ? {} : { serverName }),
    },
    token: async () => token || bearerIn((await access.credentials.headers())['authorization'], file),
  };
}

function bearerIn(authorization: string | undefined, file: string): string {
  const token = /^bearer (.+)$/iu.exec(authorization ?? '')?.[1];
  if (token !== undefined) return token;
  throw new TerminalError(
    `${file} has no token for its user: give an access key with --token-file or --token`,
  );
}

/** The configuration of the API; that of a virtual cluster is not needed. */
export async function managementConfig(
  command: Command,
): Promise<{ readonly management: ManagementConfig; readonly level: 'error' | 'silent' }> {
  const { config } = await loadConfig(managementInput(command));
  return { management: config.management, level: config.log.level === 'silent' ? 'silent' : 'error' };
}

/** The connection of the local administrator, who can read the API's files. */
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
    `no access key, and no master key in ${dataDir}: give --token-file or --token, or set ENDPOINT_SYNCER_TOKEN; ` +
      'on the machine where the API runs, its --config is enough',
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

function trustFor(options: ConnectionOptions, management: ManagementConfig | undefined): ServerTrust {
  const given = authorityIn(options);
  if (given !== undefined || management === undefined) return { kind: 'authorities', ca: given };
  const { tls, dataDir } = management;
  if (tls.certFile !== '') {
    return { kind: 'certificate', certificate: readText(tls.certFile, 'managementApi.tls.certFile') };
  }
  const advice =
    'the API writes ca.crt into its dataDir when it starts; from another machine give --server and --certificate-authority';
  return { kind: 'authorities', ca: readText(join(dataDir, 'ca.crt'), 'the certificate of the API', advice) };
}

/** PEM; undefined where no flag gives it. */
function authorityIn(options: ConnectionOptions): string | undefined {
  const { certificateAuthority: file, certificateAuthorityData: data } = options;
  if (file === undefined && data === undefined) return undefined;
  const pem =
    file === undefined
      ? Buffer.from(data ?? '', 'base64').toString('utf8')
      : readText(file, '--certificate-authority');
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  const flag = file === undefined ? '--certificate-authority-data' : `--certificate-authority ${file}`;
  throw new TerminalError(
    `${flag} contains no PEM certificate: give a copy of ca.crt from the dataDir of the API`,
  );
}

function readText(file: string, what: string, advice = ''): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const end = advice === '' ? '' : `; ${advice}`;
    throw new TerminalError(`${what} cannot be read: ${why}${end}`, { cause: error });
  }
}
