/** Access to an API server from a kubeconfig, a Secret with a kubeconfig, or the service account of the Pod. */

import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { codeOf, fileProblem, TerminalError } from '../../base/errors.ts';
import { SECRETS, type NamespacedName } from '../object.ts';
import { StatusError } from '../status-error.ts';
import { plainText } from '../../base/excerpt.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, objectList, ownValue, text, type JsonObject } from '../../base/json.ts';
import { takesCredentials, type Credentials, type ServerAccess, type ServerTrust } from '../access.ts';
import { createCredentials, impersonationAlone } from './credentials.ts';
import {
  entryError,
  mergeKubeconfigs,
  parseKubeconfig,
  type Kubeconfig,
  type NamedEntry,
  readTextFile,
  selectContext,
  textOf,
  type SelectedContext,
  type UserEntry,
} from './kubeconfig-file.ts';
import { checkCluster, checkUser, hasCertificate, NO_CERTIFICATE } from './kubeconfig-rules.ts';
import { serverUrl } from './server-url.ts';
import { httpProxy, proxyFromEnvironment } from './proxy-environment.ts';
import type { ClusterClient } from '../types.ts';
import { isIPv6 } from 'node:net';

export interface AccessSource {
  /** Path of a kubeconfig; '' means the service account of the Pod, then `KUBECONFIG`, then `~/.kube/config`. */
  readonly kubeconfig: string;
  /** '' means the file's current context. A context without a file skips the service account. */
  readonly context: string;
  /** Another URL of the API server; '' or absent: the one of the file. */
  readonly server?: string;
}

export interface AccessEnvironment {
  readonly clock: Clock;
  /** Default `process.env`. */
  readonly env?: Environment;
  /** Where the user names the file, for errors: `with --kubeconfig`. */
  readonly setting?: string;
  /** Default: the path that kubelets use. */
  readonly serviceAccountFolder?: string;
  /** Default: a line on standard error. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** Reads and checks all files. Throws `TerminalError`, which names the invalid file and entry. */
export function loadClusterAccess(
  source: AccessSource,
  {
    clock,
    setting = 'in the configuration',
    env = process.env,
    serviceAccountFolder = SERVICE_ACCOUNT_FOLDER,
    warn = (message) => void process.stderr.write(`warning: ${plainText(message)}\n`),
  }: AccessEnvironment,
): ServerAccess {
  const isUnnamed = source.kubeconfig === '' && source.context === '';
  if (isUnnamed && isInCluster(env, serviceAccountFolder)) {
    return inClusterAccess({ env, clock, folder: serviceAccountFolder, server: source.server, warn });
  }
  const isNamed = source.kubeconfig !== '';
  const files = isNamed ? [resolve(source.kubeconfig)] : usualFiles(env);
  let known: { readonly texts: readonly (string | undefined)[]; readonly access: ServerAccess } | undefined;
  // Operators mount a Secret with a kubeconfig, which the kubelet replaces.
  const read = (): ServerAccess => {
    const texts = files.map((file) => readKubeconfig(file, setting, isNamed));
    if (known?.texts.join('\0') === texts.join('\0')) return known.access;
    const parsed = texts.flatMap((content, at) =>
      content === undefined ? [] : [parseKubeconfig(content, files[at] ?? '', dirname(files[at] ?? ''))],
    );
    if (parsed.length === 0)
      throw new MissingKubeconfigError(`no kubeconfig found: ${NO_FILE}; name a file ${setting}`);
    const config = mergeKubeconfigs(parsed);
    const selected = selectContext(config, source.context);
    for (const warning of config.warnings) warn(warning);
    if (selected.missingUser !== undefined)
      warn(`${selected.missingUser.message}; as with kubectl, requests have no credential`);
    const access = accessOf(selected, {
      clock,
      env,
      server: source.server,
      files,
      warn,
    });
    known = { texts, access };
    return access;
  };
  return renewedAccess(read(), read, { clock, lifeMs: FILE_LIFE_MS, pauseMs: FILE_PAUSE_MS });
}

/** Neither named, nor where kubectl looks. */
export class MissingKubeconfigError extends TerminalError {}

const NO_FILE =
  'this is not a Pod with a service account, KUBECONFIG names no existing file, and ~/.kube/config does not exist';
const FILE_LIFE_MS = 30_000;
const FILE_PAUSE_MS = 1000;
/** The Secret is reread immediately when the server rejects its credentials or cannot be reached. */
const SECRET_LIFE_MS = 5 * 60_000;
const SECRET_PAUSE_MS = 10_000;

/** Keys of Secrets with a kubeconfig: of vCluster, Cluster API, Kamaji, k3k and kubeadm. */
const SECRET_KEYS = ['config', 'value', 'kubeconfig', 'kubeconfig.yaml', 'admin.conf'];

interface SecretSettings {
  readonly clock: Clock;
  /** As in {@link AccessSource}. */
  readonly server?: string;
  /** The URL to use instead of the one in the Secret, if `server` is ''. */
  readonly serverOf?: ((ofSecret: string) => string) | undefined;
  /** Default: in this thread. */
  readonly parse?: ParseKubeconfig | undefined;
  /** Default `process.env`. */
  readonly env?: Environment;
}

/** `source`: where the text is from, for messages. Rejects with a `TerminalError`. */
export type ParseKubeconfig = (text: string, source: string) => Promise<Kubeconfig>;

/** Access from the kubeconfig in a Secret, such as vCluster's `vc-NAME`. Renewed certificates are picked up.
 * Rejects with `TerminalError` when it is missing or unusable, with `TransportError` when the host does not respond.
 */
export async function kubeconfigFromSecret(
  host: Pick<ClusterClient, 'get'>,
  secret: NamespacedName,
  settings: SecretSettings,
): Promise<ServerAccess> {
  const { clock } = settings;
  const read = (): Promise<ServerAccess> => readSecret(host, secret, settings);
  return renewedAccess(await read(), read, { clock, lifeMs: SECRET_LIFE_MS, pauseMs: SECRET_PAUSE_MS });
}
/** A Secret that may be created later: vCluster writes it after its own start. */
export class MissingSecretError extends TerminalError {
  constructor(source: string, cause: StatusError) {
    super(
      `${source} does not exist: vCluster writes vc-NAME into its own namespace after its start; check endpointSyncer.name and the namespace, or set endpointSyncer.virtual.secret if yours has another name`,
      { cause },
    );
  }
}

async function readSecret(
  host: Pick<ClusterClient, 'get'>,
  { namespace, name }: NamespacedName,
  { clock, server, serverOf, parse, env = process.env }: SecretSettings,
): Promise<ServerAccess> {
  const source = `Secret ${namespace}/${name} of the host cluster`;
  const secret = await host.get(SECRETS, { namespace, name }).catch((cause: unknown) => {
    if (!(cause instanceof StatusError)) throw cause;
    if (cause.code === 404) throw new MissingSecretError(source, cause);
    throw new TerminalError(`${source} cannot be read: ${cause.message}`, { cause });
  });
  const data = isJsonObject(secret['data']) ? secret['data'] : {};
  const encoded = SECRET_KEYS.map((key) => textOf(data, key)).find((text) => text !== undefined);
  if (encoded === undefined) {
    const keys = Object.keys(data).join(', ');
    throw new TerminalError(
      `${source} has none of the keys ${SECRET_KEYS.join(', ')} with a kubeconfig; it has: ${keys === '' ? 'none' : keys}`,
    );
  }
  const content = Buffer.from(encoded, 'base64').toString('utf8');
  const config = parse === undefined ? parseKubeconfig(content, source, '/') : await parse(content, source);
  config.clusters.forEach((entry) => refuseOtherFields(entry, DATA_FIELDS.cluster));
  config.users.forEach((entry) => refuseOtherFields(entry, DATA_FIELDS.user));
  const selected = selectContext(config, '');
  if (selected.missingUser !== undefined) throw selected.missingUser;
  return accessOf(selected, {
    clock,
    env,
    server: server || serverOf?.(text(selected.cluster.fields, 'server')),
  });
}

/** The fields of a kubeconfig that are data. Every other field runs a program, reads a file, or redirects requests of the daemon, and
 * writing a Secret must not permit that. The two settings of TLS only concern the server that the Secret names anyway, together with its
 * authority; vCluster writes them (`exportKubeConfig.insecure`). The last two fields have no effect here.
 */
const DATA_FIELDS = {
  cluster: [
    'server',
    'certificate-authority-data',
    'tls-server-name',
    'insecure-skip-tls-verify',
    'disable-compression',
    'extensions',
  ],
  user: ['client-certificate-data', 'client-key-data', 'token', 'extensions'],
};

function refuseOtherFields(entry: NamedEntry, allowed: readonly string[]): void {
  const refused = Object.entries(entry.fields).find(
    ([name, value]) => value !== '' && !allowed.includes(name),
  );
  if (refused === undefined) return;
  throw entryError(
    entry,
    refused[0],
    'is not accepted in a kubeconfig from a Secret, which must not make this program run a program, read a file, or use a proxy: ' +
      'write server, token and the fields that end in -data, or name a kubeconfig file in endpointSyncer.virtual.kubeconfig',
  );
}

/** kubectl's rules: KUBECONFIG may name several files, of which some may be missing. */
function usualFiles(env: Environment): string[] {
  const named = env['KUBECONFIG'] || join(env['HOME'] ?? homedir(), '.kube', 'config');
  const files = named.split(env['KUBECONFIG'] ? delimiter : '\0').filter((path) => path !== '');
  return [...new Set(files)].map((path) => resolve(path));
}

/** Undefined: there is no such file, and it need not be there. */
function readKubeconfig(file: string, setting: string, isNamed: boolean): string | undefined {
  try {
    const content = readFileSync(file);
    return new TextDecoder(encodingOf(content), { fatal: true }).decode(content);
  } catch (cause) {
    const code = codeOf(cause);
    if (code === 'ENOENT' && !isNamed) return undefined;
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw new TerminalError(`${file} is not YAML: it is not text in UTF-8; name another file ${setting}`, {
        cause,
      });
    const problem = `the kubeconfig ${file} cannot be read: ${fileProblem(cause)}`;
    throw new TerminalError(`${problem}; name another file ${setting}`, { cause });
  }
}

/** As Go's YAML parser, and some shells of Windows write UTF-16. */
function encodingOf([first, second]: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}

interface AccessSettings {
  readonly clock: Clock;
  readonly env: Environment;
  readonly server: string | undefined;
}

interface AccessFiles extends AccessSettings, Partial<Pick<UserEntry, 'files' | 'warn'>> {}

function withoutSlash(server: string): string {
  return server.replace(/\/+$/u, '');
}

function accessOf(
  selected: SelectedContext,
  { clock, env, server: other, files = [], warn = () => undefined }: AccessFiles,
): ServerAccess {
  const { cluster, source, user } = selected;
  const written = text(cluster.fields, 'server');
  if (written === '') throw entryError(cluster, 'server', 'is missing; add the URL of the API server');
  const url = serverUrl(other || written);
  if (url === undefined) {
    const shown = written.includes('@') ? 'with a user name or a password' : JSON.stringify(other || written);
    throw entryError(cluster, 'server', `${shown} is not an http or https URL of an API server; correct it`);
  }
  const isSecure = url.protocol === 'https:';
  checkCluster(cluster, isSecure);
  checkUser(user, isSecure);
  const trust = trustSource(cluster);
  if (isSecure) checkAuthority(trust(), cluster);
  const server = withoutSlash(url.href);
  const proxy = textOf(cluster.fields, 'proxy-url');
  const proxyUrl =
    proxy === undefined
      ? proxyFromEnvironment(url, env)
      : httpProxy(proxy, entryError(cluster, 'proxy-url', '').message.trim());
  const entry = { user, cluster: clusterInfo(other || written, cluster), files, warn };
  return {
    server,
    namespace: selected.namespace,
    description: `context ${selected.context} of ${source}`,
    proxyUrl,
    credentials: credentialsFor({ server, proxyUrl }, entry, clock),
    trust,
  };
}

/** As client-go, which reads no credential for a server without TLS, but impersonates. A server on this machine gets them here. */
function credentialsFor(
  target: Pick<ServerAccess, 'server' | 'proxyUrl'>,
  entry: UserEntry,
  clock: Clock,
): Credentials {
  const { name, fields, source } = entry.user;
  if (takesCredentials(target)) return createCredentials(entry, clock);
  if (Object.keys(fields).some((field) => !/^(?:as(?:-.*)?|extensions)$/u.test(field)))
    entry.warn(
      `${source}: ${new URL(target.server).origin} gets no credential of user ${name}, because it is not an https URL`,
    );
  return impersonationAlone(entry.user);
}

function trustSource(cluster: NamedEntry): () => ServerTrust {
  const { fields } = cluster;
  const data = textOf(fields, 'certificate-authority-data');
  const file = textOf(fields, 'certificate-authority');
  const serverName = textOf(fields, 'tls-server-name');
  const fixed = data === undefined ? undefined : Buffer.from(data, 'base64');
  return () => {
    const ca =
      fixed ?? (file === undefined ? undefined : readTextFile(file, cluster, 'certificate-authority'));
    return {
      isUnverified: ownValue(fields, 'insecure-skip-tls-verify') === true,
      ...(ca === undefined ? {} : { ca }),
      ...(serverName === undefined ? {} : { serverName }),
    };
  };
}

/** TLS accepts an unreadable CA silently and then rejects every certificate, so it is checked here. */
function checkAuthority({ ca }: ServerTrust, cluster: NamedEntry): void {
  if (ca === undefined || hasCertificate(ca)) return;
  const [field = ''] = ['certificate-authority', 'certificate-authority-data'].filter(
    (name) => name in cluster.fields,
  );
  throw entryError(cluster, field, NO_CERTIFICATE);
}

/** Reserved among the extensions of a cluster for exec plugins. */
const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

/** Cluster information for an exec plugin with `provideClusterInfo`. */
function clusterInfo(server: string, { fields }: NamedEntry): JsonObject {
  const file = textOf(fields, 'certificate-authority');
  const authority =
    textOf(fields, 'certificate-authority-data') ??
    (file === undefined ? undefined : readFileSync(file).toString('base64'));
  const extension = objectList(fields, 'extensions').findLast((one) => one['name'] === EXEC_EXTENSION);
  const told = ['insecure-skip-tls-verify', 'tls-server-name', 'proxy-url', 'disable-compression'];
  return {
    server,
    ...(authority === undefined ? {} : { 'certificate-authority-data': authority }),
    ...Object.fromEntries(told.flatMap((name) => (fields[name] ? [[name, fields[name]]] : []))),
    config: extension?.['extension'] ?? null,
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a kubelet puts the token, the CA and the namespace. */
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

function isInCluster(env: Environment, folder: string): boolean {
  return Boolean(env['KUBERNETES_SERVICE_HOST']) && existsSync(join(folder, 'token'));
}

/** Throws `TerminalError` when a file of the service account cannot be read. */
function inClusterAccess({
  env,
  clock,
  folder,
  server: other,
  warn,
}: AccessSettings & Pick<UserEntry, 'warn'> & { readonly folder: string }): ServerAccess {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const source = 'the service account of this Pod';
  const caFile = join(folder, 'ca.crt');
  const user: NamedEntry = {
    kind: 'user',
    name: 'service-account',
    fields: { tokenFile: join(folder, 'token') },
    source,
    lines: {},
  };
  readTextFile(caFile, { ...user, kind: 'cluster', name: 'ca.crt' }, '');
  const namespaceFile = join(folder, 'namespace');
  const server = withoutSlash(other || `https://${isIPv6(host) ? `[${host}]` : host}:${port}`);
  const proxyUrl = proxyFromEnvironment(new URL(server), env);
  return {
    server,
    proxyUrl,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : '',
    description: source,
    credentials: credentialsFor({ server, proxyUrl }, { user, cluster: {}, files: [], warn }, clock),
    trust: () => ({ ca: readFileSync(caFile), isUnverified: false }),
  };
}

// Access whose source changes while the program runs: a Secret, or a file that a kubelet or an operator replaces.

interface RenewalOptions {
  readonly clock: Clock;
  /** Age after which the source is read again for a request or a connection. */
  readonly lifeMs: number;
  /** The shortest time between two readings after a refusal or a failure. */
  readonly pauseMs: number;
}

/**
 * `read` returns the same object where nothing has changed. It may fail: what was read before may still be valid, and if it is not, the server
 * says so. Certificates, token and authority count from the next connection or request on, and so does another server.
 */
function renewedAccess(
  first: ServerAccess,
  read: () => ServerAccess | Promise<ServerAccess>,
  { clock, lifeMs, pauseMs }: RenewalOptions,
): ServerAccess {
  let access = first;
  let readAtMs = clock.monotonicMs();
  const keep = (next: ServerAccess): ServerAccess => (access = next);
  const keepOld = (): ServerAccess => access;
  const current = (): ServerAccess | Promise<ServerAccess> => {
    if (clock.monotonicMs() - readAtMs < lifeMs) return access;
    readAtMs = clock.monotonicMs();
    try {
      const next = read();
      return next instanceof Promise ? next.then(keep, keepOld) : keep(next);
    } catch {
      return access;
    }
  };
  /** Returns true if the next request reads the source again. */
  const outdated = (): boolean => {
    const mayDiffer = clock.monotonicMs() - readAtMs > pauseMs;
    if (mayDiffer) readAtMs = -Infinity;
    return mayDiffer;
  };
  const credentials: Credentials = {
    headers() {
      const next = current();
      return next instanceof Promise
        ? next.then((renewed) => renewed.credentials.headers())
        : next.credentials.headers();
    },
    certificate: async () => (await current()).credentials.certificate(),
    invalidate() {
      const mayDiffer = outdated();
      return access.credentials.invalidate() || mayDiffer;
    },
  };
  return {
    ...first,
    get server() {
      return access.server;
    },
    get proxyUrl() {
      return access.proxyUrl;
    },
    credentials,
    trust: async () => (await current()).trust(),
    unreachable: () => void outdated(),
  };
}
