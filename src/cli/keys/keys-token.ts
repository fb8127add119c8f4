/**
 * `keys token`: a token for a connected cluster, as text, as the output of a client-go exec plugin, or as a kubeconfig whose user runs this
 * command as an exec plugin, so that kubectl gets a new token when one expires.
 */

import { formatOption } from '../output/listing.ts';
import { existsSync, readFileSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { createHash, randomBytes } from 'node:crypto';
import { writeYaml } from '../../base/yaml/write.ts';
import { Option, type Command } from 'commander';
import { EXTRA, MANAGEMENT_API_VERSION } from '../../access-keys/identity.ts';
import { TerminalError, fileProblem, messageOf } from '../../base/errors.ts';
import {
  isJsonObject,
  numberField,
  objectField,
  parseJson,
  textAt,
  valueAt,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import { StatusError } from '../../kube/status-error.ts';
import { type ApiClient, type ApiConnection, type ConnectionOptions, httpsUrl } from './keys-connection.ts';
import {
  GROUP_AND_OTHERS,
  kubeconfigOf,
  verificationOf,
  printSecret,
  scopeIn,
  addScopeOptions,
  type ScopeOptions,
  scopeArguments,
  secondsIn,
} from './keys-options.ts';
import { releaseUrl } from '../installation.ts';
import { tell } from '../output/terminal.ts';

export async function printToken(client: ApiClient, options: TokenOptions): Promise<number> {
  const { connection } = client;
  const key = await connection.token();
  if (key.startsWith('local_'))
    throw new TerminalError(
      'a token belongs to an access key: give one with --token-file, --kubeconfig, --token or ENDPOINT_SYNCER_TOKEN',
    );
  const spec = specOf(options);
  const issue = (): Promise<IssuedToken> => issueToken(client, spec);
  switch (options.output) {
    case 'token':
      printSecret(`${(await issue()).token}\n`);
      return 0;
    case 'exec-credential': {
      const apiVersion = requestedVersion(process.env['KUBERNETES_EXEC_INFO'] ?? '');
      const file = cacheFile(process.env, [connection.server, key, spec]);
      const cached = options.cache ? cachedToken(file) : undefined;
      const issued = cached !== undefined && (await isCurrent(client, cached)) ? cached : await issue();
      if (issued !== cached) cacheToken(file, issued);
      printSecret(`${JSON.stringify(execCredential(issued, apiVersion))}\n`);
      return 0;
    }
    case 'kubeconfig': {
      // An invalid key or scope fails here instead of in kubectl.
      const { token } = await issue();
      const user = claimsOf(token).name;
      const exec = execConfig(connection, key, options);
      printSecret(
        writeYaml(kubeconfigOf(options.clusterName, { name: user, user: { exec } }, clusterIn(options))),
      );
      if (options.clusterServer === undefined) {
        tell('this kubeconfig has no cluster: give --cluster-server here, or --server to kubectl');
      }
      return 0;
    }
  }
}

const CHECK_TIMEOUT_MS = 5000;

/**
 * False when the key has changed since, or is not accepted any more: clusters reject its token then. True if the API does not say: a token in the
 * cache must also work while the API cannot be reached.
 */
async function isCurrent(client: ApiClient, { token }: IssuedToken): Promise<boolean> {
  const [apiVersion, kind] = ['authentication.k8s.io/v1', 'SelfSubjectReview'];
  const call = { method: 'POST', path: 'selfsubjectreviews', body: { apiVersion, kind } } as const;
  try {
    const review = await client.send({ ...call, apiVersion, timeoutMs: CHECK_TIMEOUT_MS });
    const generation = textAt(review, 'status', 'userInfo', 'extra', EXTRA.generation, 0);
    return generation === '' || generation === String(claimsOf(token).generation);
  } catch (error) {
    const refusal = error instanceof TerminalError ? error.cause : error;
    return !(refusal instanceof StatusError && refusal.code === 401);
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
  const token = textAt(created, 'status', 'token');
  if (token === '') throw new TerminalError('the response of the server does not contain the token');
  return { token, renewAtMs: nowMs + renewAfterMs(claimsOf(token).lifeSeconds) };
}

/** Shortly before the expiry, by the clock of this machine, which may differ from that of the server. */
function renewAfterMs(lifeSeconds: number): number {
  return (lifeSeconds - Math.min(60, lifeSeconds / 5)) * 1000;
}

const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
type ExecVersion = (typeof EXEC_VERSIONS)[number];

/** client-go takes an answer of the version in the kubeconfig only, which it writes into `info`; '' is a run by hand. */
function requestedVersion(info: string): ExecVersion {
  if (info === '') return EXEC_VERSIONS[0];
  const asked = textAt(jsonIn(info), 'apiVersion');
  const version = EXEC_VERSIONS.find((one) => one === asked);
  if (version !== undefined) return version;
  throw new TerminalError(
    `KUBERNETES_EXEC_INFO asks for apiVersion ${JSON.stringify(asked)}: use ${EXEC_VERSIONS.join(' or ')} in the kubeconfig`,
  );
}

function execCredential({ token, renewAtMs }: IssuedToken, apiVersion: ExecVersion): JsonObject {
  const expirationTimestamp = `${new Date(renewAtMs).toISOString().slice(0, 19)}Z`;
  return {
    apiVersion,
    kind: 'ExecCredential',
    status: { expirationTimestamp, token },
  };
}

interface TokenOptions extends ScopeOptions, ConnectionOptions {
  readonly output: 'token' | 'kubeconfig' | 'exec-credential';
  /** Seconds. */
  readonly ttl?: number;
  readonly cache: boolean;
  readonly clusterServer?: string;
  readonly clusterCertificateAuthority?: string;
  readonly clusterName: string;
}

const CLUSTER_GROUP = 'Cluster (for -o kubeconfig):';

export function addTokenOptions(command: Command): void {
  command
    .addOption(
      formatOption(
        ['token', 'kubeconfig', 'exec-credential'],
        'the token, a kubeconfig that renews it, or the output of an exec plugin',
      ),
    )
    .addOption(
      new Option(
        '--ttl <duration>',
        'lifetime of the token, such as 1h; default: that of the server',
      ).argParser(secondsIn),
    )
    .option('--no-cache', 'issue a new token even if the cache of exec-credential has an unexpired one');
  addScopeOptions(command, 'Scope (default: that of the access key; options may be repeated):');
  const add = (flags: string, help: string): Option => new Option(flags, help).helpGroup(CLUSTER_GROUP);
  command.addOption(add('--cluster-server <url>', 'API server of the cluster').argParser(httpsUrl));
  command.addOption(
    add('--cluster-certificate-authority <file>', 'PEM certificates to verify the API server with'),
  );
  command.addOption(add('--cluster-name <name>', 'name in the kubeconfig').default('cluster'));
}

function clusterIn({ clusterServer, clusterCertificateAuthority: file, clusterName: name }: TokenOptions) {
  const authority = file === undefined ? {} : { 'certificate-authority-data': authorityData(file) };
  return clusterServer === undefined ? undefined : { name, cluster: { server: clusterServer, ...authority } };
}

function execConfig(connection: ApiConnection, key: string, options: TokenOptions): JsonObject {
  const { ttl } = options;
  const { command, programArguments } = pluginCommand();
  const isKeyNamed = usesKubeconfig(options) || options.tokenFile !== undefined;
  return {
    apiVersion: EXEC_VERSIONS[0],
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
    installHint: `endpoint-syncer issues the tokens of this cluster: npm install --global --ignore-scripts ${releaseUrl()}`,
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
  const { kubeconfig, context } = options;
  if (kubeconfig !== undefined && usesKubeconfig(options)) {
    return ['--kubeconfig', resolve(kubeconfig), ...(context === undefined ? [] : ['--context', context])];
  }
  return [
    '--server',
    connection.server,
    ...Object.entries(verificationOf(connection)).flatMap(([flag, value]) => [`--${flag}`, value]),
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

// The cache of the exec plugin: tokens in files that only their owner can read.

interface IssuedToken {
  readonly token: string;
  /** Epoch milliseconds, shortly before the expiry. */
  readonly renewAtMs: number;
}

/** Below `XDG_CACHE_HOME` or `HOME`; undefined without either. `request`: everything that the token depends on. */
function cacheFile(
  { XDG_CACHE_HOME: cache, HOME: home }: NodeJS.ProcessEnv,
  request: JsonValue,
): string | undefined {
  const base = cache || (home && join(home, '.cache'));
  const name = `${createHash('sha256').update(JSON.stringify(request)).digest('hex')}.json`;
  return base ? join(base, 'endpoint-syncer', 'tokens', name) : undefined;
}

/** Undefined if there is none or it is due for renewal. */
function cachedToken(file: string | undefined): IssuedToken | undefined {
  if (file === undefined) return undefined;
  try {
    if ((statSync(file).mode & GROUP_AND_OTHERS) !== 0) return undefined;
    const value = parseJson(readFileSync(file, 'utf8'));
    const [token, renewAtMs] = [textAt(value, 'token'), valueAt(value, ['renewAtMs'])];
    if (token === '' || typeof renewAtMs !== 'number' || renewAtMs <= Date.now()) return undefined;
    return { token, renewAtMs };
  } catch {
    return undefined;
  }
}

/** A token that cannot be cached works: the next run requests another one. */
function cacheToken(file: string | undefined, issued: IssuedToken): void {
  if (file === undefined) return;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    replaceFile(file, JSON.stringify(issued));
  } catch (error) {
    const why = `${fileProblem(error)}: ${file}`;
    tell(`warning: the token is not cached, so each run requests one: ${why}`);
  }
}

function replaceFile(file: string, text: string): void {
  const next = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(next, text, { mode: 0o600, flag: 'wx' });
  try {
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

interface TokenClaims {
  readonly name: string;
  /** Of the access key, when the token was issued. */
  readonly generation: number;
  readonly lifeSeconds: number;
}

/** The claims of a token from the server; they are not verified. */
function claimsOf(token: string): TokenClaims {
  const claims = payloadOf(token);
  return {
    name: textAt(claims, 'platform.sh', 'name') || 'endpoint-syncer',
    generation: numberField(objectField(claims, 'platform.sh'), 'gen', NaN),
    lifeSeconds: Math.max(0, numberField(claims, 'exp') - numberField(claims, 'iat')) || 0,
  };
}

function payloadOf(token: string): JsonObject {
  return jsonIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
}

/** Empty for a text that is not a JSON object. */
function jsonIn(text: string): JsonObject {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
