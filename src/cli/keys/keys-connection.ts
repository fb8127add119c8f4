/** Chooses the address, the authority and the credential of a `keys` command. */

import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PeerCertificate } from 'node:tls';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { Agent, buildConnector, request } from 'undici';
import { collectInput } from '../../base/input-buffer.ts';
import { parseBindAddress } from '../../base/bind-address.ts';
import { configFile } from '../config/files.ts';
import { loadApiConfig } from '../config/load-api.ts';
import type { ManagementConfig } from '../../access-keys/config.ts';
import { fileProblem, TerminalError, codeOf } from '../../base/errors.ts';
import { systemClock } from '../../base/clock.ts';
import { openLocalAdministrator } from '../../access-keys/credentials/master-key.ts';
import { proxyFromEnvironment } from '../../kube/credentials/proxy-environment.ts';
import { addConfigOptions, loaderInput } from '../config-options.ts';
import { MANAGEMENT_API_VERSION } from '../../access-keys/identity.ts';
import { takesCredentials } from '../../kube/access.ts';
import { responseError } from '../../kube/client/responses.ts';
import { throughProxy, verifiedAs } from '../../kube/client/transport.ts';
import type { StatusError } from '../../kube/status-error.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { tell } from '../output/terminal.ts';

export interface ConnectionOptions {
  readonly server?: string;
  readonly certificateAuthority?: string;
  readonly certificateAuthorityData?: string;
  readonly tlsServerName?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
}

const HELP_GROUP = 'Connection:';
/** The fields of the configuration with the address of the API. */
const FIELDS = ['bindAddress', 'dataDir', 'tls.certFile', 'tls.keyFile'];

export function addConnectionOptions(command: Command): void {
  const add = (flags: string, help: string): void => {
    command.addOption(new Option(flags, help).helpGroup(HELP_GROUP));
  };
  command.addOption(
    serverOption('address of the API; default: that of the configuration').helpGroup(HELP_GROUP),
  );
  const pem = 'PEM certificates to verify the server with';
  add('--certificate-authority <file>', `${pem}; default: ca.crt in dataDir`);
  add('--certificate-authority-data <base64>', `${pem}, in base64`);
  add('--tls-server-name <name>', 'name in the certificate of the server; default: the host of its address');
  add(
    '--token <key>',
    'access key; default: ENDPOINT_SYNCER_TOKEN, then, on the machine of the API, its master key',
  );
  add('--token-file <file>', 'file with the access key; other processes can see --token, but not this file');
  add(
    '--kubeconfig <file>',
    'kubeconfig of the API with its address, authority and access key; default: KUBECONFIG, if there is no --server, ' +
      'no configuration and no API on this machine',
  );
  add('--context <name>', 'context of the kubeconfig; default: its current context');
  addConfigOptions(command, FIELDS);
}

export function serverOption(help: string): Option {
  return new Option('-s, --server <url>', help).argParser(httpsUrl);
}

/** Throws for anything but an https URL. */
export function httpsUrl(text: string): string {
  if (text.startsWith('https://') && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be an https:// URL such as https://127.0.0.1:8443.');
}

/** Rejects with a `ConfigError`, or with a `TerminalError` if the address or the credential is missing. */
export async function connectionFor(command: Command): Promise<ApiConnection> {
  const options: ConnectionOptions = command.opts();
  const flagKey = keyFromFlags(options);
  if (options.kubeconfig !== undefined || options.context !== undefined) {
    return kubeconfigConnection(options, flagKey);
  }
  const key = flagKey ?? keySource(process.env['ENDPOINT_SYNCER_TOKEN'], 'in ENDPOINT_SYNCER_TOKEN');
  const hasConfig = configFile(loaderInput(command)) !== undefined;
  const { management } = await managementConfig(command);
  const { server } = options;
  if (server === undefined && !hasConfig && !isServedHere(management)) {
    if (process.env['KUBECONFIG']) return kubeconfigConnection(options, key);
    throw new TerminalError(NO_ADDRESS);
  }
  const isLocal = server === undefined || hasConfig;
  const trust = trustFor(options, isLocal ? management : undefined);
  const address = server ?? localServer(management);
  const api = { ...located(address), trust };
  if (key !== undefined) return { ...api, ...key };
  if (isLocal) return { ...api, ...(await localKey(management)) };
  throw new TerminalError(
    'no access key: give --token-file, --token or --kubeconfig, or set ENDPOINT_SYNCER_TOKEN',
  );
}

function located(server: string): Pick<ApiConnection, 'server' | 'proxyUrl'> {
  return { server, proxyUrl: proxyFromEnvironment(new URL(server), process.env) };
}

const NO_ADDRESS =
  'no address of the API: give --server URL and an access key (--token-file, --token or ENDPOINT_SYNCER_TOKEN), or --kubeconfig FILE; ' +
  'on the machine where the API runs, --config FILE is enough';

type KeySource = Pick<ApiConnection, 'token' | 'credential'>;

function keySource(key: string | undefined, where: string): KeySource | undefined {
  return key ? { token: () => key, credential: `the access key ${where}` } : undefined;
}

function keyFromFlags({ token, tokenFile }: ConnectionOptions): KeySource | undefined {
  if (token) return keySource(token, 'of --token');
  if (tokenFile === undefined) return undefined;
  const advice = 'write the access key to this file or name another';
  const key = readText(tokenFile, '--token-file', advice).trim();
  if (key === '') throw new TerminalError(`--token-file ${tokenFile} is empty: ${advice}`);
  return keySource(key, `in ${tokenFile}`);
}

/** Without an explicit address the API must have run on this machine: its authority is in `dataDir`. */
function isServedHere({ dataDir, tls }: ManagementConfig): boolean {
  return tls.certFile !== '' || existsSync(join(dataDir, 'ca.crt'));
}

/** As kubectl chooses: `--kubeconfig`, else the files in KUBECONFIG, else `~/.kube/config`. A flag overrides what the file says. */
async function kubeconfigConnection(
  options: ConnectionOptions,
  key: KeySource | undefined,
): Promise<ApiConnection> {
  const { loadClusterAccess } = await import('../../kube/credentials/kubeconfig.ts');
  const { kubeconfig = '', context = '', server } = options;
  const named = kubeconfig || process.env['KUBECONFIG'] || '~/.kube/config';
  // The service account of a Pod is not a user of this API.
  const env = { ...process.env, KUBERNETES_SERVICE_HOST: undefined };
  const access = loadClusterAccess(
    { kubeconfig, context, ...(server !== undefined && { server }) },
    { clock: systemClock, env, setting: 'with --kubeconfig' },
  );
  const { ca, serverName: written, isUnverified } = await access.trust();
  const authority = authorityIn(options);
  if (isUnverified && authority === undefined) {
    throw new TerminalError(
      `${named} does not verify the server: give --certificate-authority, or replace insecure-skip-tls-verify by its certificate-authority`,
    );
  }
  // The name belongs to the server of the file, as in kubectl.
  const serverName = options.tlsServerName ?? (server === undefined ? written : undefined);
  return {
    server: access.server,
    proxyUrl: access.proxyUrl,
    trust: authorities(authority ?? ca?.toString(), serverName),
    ...(key ?? {
      token: async () => bearerIn((await access.credentials.headers())['authorization'], named),
      credential: `the access key in ${named}`,
    }),
  };
}

function bearerIn(authorization: string | undefined, file: string): string {
  const token = /^bearer (.+)$/iu.exec(authorization ?? '')?.[1];
  if (token !== undefined) return token;
  throw new TerminalError(
    `${file} has no token for its user: give an access key with --token-file or --token`,
  );
}

/** The configuration of the API, without that of a virtual cluster. */
export async function managementConfig(
  command: Command,
): Promise<{ readonly management: ManagementConfig; readonly level: 'error' | 'silent' }> {
  const { management, log } = await loadApiConfig(loaderInput(command));
  return { management, level: log.level === 'silent' ? 'silent' : 'error' };
}

/** The connection of the local administrator, which needs read access to the files of the API. */
export async function localConnection(
  management: ManagementConfig,
  server: string | undefined,
): Promise<ApiConnection> {
  return {
    ...located(server ?? localServer(management)),
    trust: trustFor({}, management),
    ...(await localKey(management)),
  };
}

async function localKey({ dataDir }: ManagementConfig): Promise<KeySource> {
  const administrator = await openLocalAdministrator(dataDir, systemClock);
  if (administrator === undefined)
    throw new TerminalError(
      `no access key, and no master key in ${dataDir}: give --token-file or --token, or set ENDPOINT_SYNCER_TOKEN; ` +
        'on the machine where the API runs, its --config is enough',
    );
  return { token: () => administrator.credential(), credential: `the master key in ${dataDir}` };
}

/** A wildcard address is replaced by that of the loopback interface. */
function localServer({ bindAddress }: ManagementConfig): string {
  const { host = '', port = 0 } = parseBindAddress(bindAddress) ?? {};
  if (port === 0) {
    throw new TerminalError(
      'managementApi.bindAddress has port 0: give the address that the API printed with --server',
    );
  }
  const name = host === '' || host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `https://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function trustFor(options: ConnectionOptions, management: ManagementConfig | undefined): ServerTrust {
  const given = authorityIn(options);
  const { tlsServerName } = options;
  if (given !== undefined || management === undefined) return authorities(given, tlsServerName);
  const { tls, dataDir } = management;
  if (tls.certFile !== '') {
    return { kind: 'certificate', certificate: readText(tls.certFile, 'managementApi.tls.certFile') };
  }
  const advice =
    'the API writes ca.crt into its dataDir when it starts; from another machine give --server and --certificate-authority';
  return authorities(readText(join(dataDir, 'ca.crt'), 'the certificate of the API', advice), tlsServerName);
}

function authorities(ca: string | undefined, serverName: string | undefined): ServerTrust {
  return { kind: 'authorities', ca, ...(serverName === undefined ? {} : { serverName }) };
}

/** PEM; undefined if no flag gives it. */
function authorityIn(options: ConnectionOptions): string | undefined {
  const { certificateAuthority: file, certificateAuthorityData: data } = options;
  if (file === undefined && data === undefined) return undefined;
  const [flag, pem] =
    file === undefined
      ? ['--certificate-authority-data', Buffer.from(data ?? '', 'base64').toString('utf8')]
      : [
          `--certificate-authority ${file}`,
          readText(file, '--certificate-authority', 'name a copy of ca.crt from the dataDir of the API'),
        ];
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  throw new TerminalError(
    `${flag} contains no PEM certificate: use a copy of ca.crt from the dataDir of the API`,
  );
}

function readText(file: string, what: string, advice = ''): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const end = advice === '' ? '' : `; ${advice}`;
    throw new TerminalError(`${what} ${file} cannot be read: ${fileProblem(error)}${end}`, { cause: error });
  }
}

// HTTP client of the `keys` commands: JSON requests to the key and token API.

/** How the certificate of the server is verified. */
type ServerTrust =
  /** With these authorities, PEM; undefined: those that this machine trusts. `serverName` replaces the host of the URL. */
  | { readonly kind: 'authorities'; readonly ca: string | undefined; readonly serverName?: string }
  /** It is this certificate, PEM, with any names: the file is on the same machine. */
  | { readonly kind: 'certificate'; readonly certificate: string };

export interface ApiConnection {
  /** `https://host:port`, optionally with a path prefix. */
  readonly server: string;
  readonly trust: ServerTrust;
  readonly proxyUrl?: string | undefined;
  /** Called for each request, because a credential may expire within a minute. */
  token(): string | Promise<string>;
  /** What the credential is and where it comes from, for errors. */
  readonly credential: string;
}

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/apis/APIVERSION/`. */
  readonly path: string;
  /** Default: `management.platform.sh/v1`. */
  readonly apiVersion?: string;
  readonly body?: JsonObject;
  readonly contentType?: string;
  readonly accept?: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
/** A page of a list, or an object. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

/** The connection to the server was refused. */
export class NoServerError extends TerminalError {}

export class ApiClient implements AsyncDisposable {
  readonly connection: ApiConnection;
  readonly #agent: Agent;

  /** Throws a `TerminalError` if the access key would be sent without TLS. */
  constructor(connection: ApiConnection) {
    if (!takesCredentials(connection))
      throw new TerminalError(
        `${connection.server} is not an https URL, and no access key is sent to another machine without TLS: name the https URL of the API with --server`,
      );
    this.connection = connection;
    const connect = buildConnector(tlsOptions(connection.trust));
    this.#agent = new Agent({ connect: throughProxy(connection.proxyUrl, connect) });
  }

  /** Rejects with `StatusError` for an error response and with `TerminalError` if there is no response. */
  async send({
    method,
    path,
    apiVersion = MANAGEMENT_API_VERSION,
    body,
    timeoutMs = TIMEOUT_MS,
    accept = 'application/json',
    contentType = 'application/json',
  }: ApiCall): Promise<JsonObject> {
    const { server } = this.connection;
    const url = `${server.replace(/\/+$/u, '')}/apis/${apiVersion}/${path}`;
    const answer = await request(url, {
      dispatcher: this.#agent,
      method,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      headers: {
        accept,
        authorization: `Bearer ${await this.connection.token()}`,
        ...(body === undefined ? {} : { 'content-type': contentType }),
        'user-agent': 'endpoint-syncer-keys',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw unreachable(this.connection, error);
    });
    for (const text of warningsIn(answer.headers['warning'])) tell(`warning: ${text}`);
    const content = await collectInput(answer.body as AsyncIterable<Buffer>, RESPONSE_BYTES_MAX);
    if (content === undefined)
      throw new TerminalError(`the response of ${url} is larger than ${RESPONSE_BYTES_MAX} bytes`);
    const text = content.toString('utf8');
    if (answer.statusCode >= 300) {
      const response = { status: answer.statusCode, headers: answer.headers, text };
      throw this.#explained(responseError(response, `${method} ${url}`, Date.now()));
    }
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value)) throw new TerminalError(`the response of ${url} is not an object`);
    return value;
  }

  /** The API gives the reason when it rejects a key that it knows. */
  #explained(error: StatusError): StatusError | TerminalError {
    if (error.code !== 401 || error.message !== 'Unauthorized') return error;
    const { server, credential } = this.connection;
    const message = `Unauthorized: ${server} does not know ${credential}: it belongs to another API, or was deleted`;
    return new TerminalError(message, { cause: error });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

function tlsOptions(trust: ServerTrust): buildConnector.BuildOptions {
  if (trust.kind === 'authorities') {
    const { ca, serverName } = trust;
    return {
      ...(ca === undefined ? {} : { ca, allowPartialTrustChain: true }),
      ...(serverName !== undefined && verifiedAs(serverName)),
    };
  }
  const { certificate } = trust;
  const { fingerprint256 } = new X509Certificate(certificate);
  return {
    ca: certificate,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host: string, peer: PeerCertificate) =>
      peer.fingerprint256 === fingerprint256
        ? undefined
        : new Error('the certificate of the server is not managementApi.tls.certFile'),
  };
}

const REFUSED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT', 'EHOSTUNREACH', 'ENOTFOUND']);

function unreachable({ server, trust }: ApiConnection, error: unknown): TerminalError {
  const code = codeOf(error);
  if (REFUSED.has(code)) {
    const message = `cannot connect to ${server} (${code}): start the API, or name another address with --server`;
    return new NoServerError(message, { cause: error });
  }
  const why = error instanceof Error ? error.message || code : String(error);
  const message = `cannot connect to ${server}: ${tlsProblem(code, why, trust) ?? why}`;
  return new TerminalError(message, { cause: error });
}

/** Undefined: not a problem of TLS. The texts of OpenSSL and Node name no flag of this command, and some have several lines. */
function tlsProblem(code: string, why: string, trust: ServerTrust): string | undefined {
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return `no TLS connection is possible (${code}); give the address that the API printed with --server`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `${why}; name one that it is for with --tls-server-name`;
  if (code === 'CERT_HAS_EXPIRED')
    return 'the certificate of the server has expired; replace it and restart the API';
  if (!/CERT|UNABLE_TO/u.test(code)) return undefined;
  if (trust.kind === 'certificate') {
    return `the certificate of the server is not managementApi.tls.certFile (${code})`;
  }
  const authority = trust.ca === undefined ? 'an authority that this machine trusts' : 'the given authority';
  return `the certificate of the server is not from ${authority} (${code}); name its authority with --certificate-authority (dataDir/ca.crt of the API)`;
}

/** `299 - "text"`, one header each or several in one. */
function warningsIn(header: string | readonly string[] | undefined): string[] {
  const text = typeof header === 'string' ? header : (header ?? []).join(', ');
  return [...text.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/gu)].map(([, quoted = '']) =>
    quoted.replaceAll(/\\(.)/gu, '$1'),
  );
}
