/** The key API and a real kube-apiserver that trusts it, set up with the files and flags of `docs/keys/connected-clusters.md`. */

import { execFile } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ManagementConfig } from '../../src/access-keys/config.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { startManagementApi, type ManagementApi } from '../../src/access-keys/management-api.ts';
import { SIGNING_KEYS } from '../../src/access-keys/tokens/key-ring.ts';
import { databaseFile } from '../../src/apiserver/storage/sqlite/database-file.ts';
import { SqliteStore } from '../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { managementConfig } from '../access-keys/composed-api.ts';
import { RawClient } from '../contract/raw-client.ts';
import { TestCluster } from '../scenarios/cluster-client.ts';
import { freePorts } from '../support/free-ports.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { whenAuthorized } from './authorization.ts';
import { pinnedVersion } from './assets.ts';
import { startRealClusters, type RealClusters } from './clusters.ts';
import { connectedClusterBlocks } from './connected-cluster-blocks.ts';

/** What the page calls them. */
const PLACEHOLDERS = {
  url: 'https://platform.example.com:8443',
  folder: '/etc/kubernetes/platform',
  certificate: /^( *)-----BEGIN CERTIFICATE-----\n *\.\.\.\n *-----END CERTIFICATE-----$/gm,
};

const MINOR = Number((process.env['KUBE_VERSION'] ?? pinnedVersion()).split('.')[1]);
const BLOCKS = connectedClusterBlocks(MINOR < 34);

export interface Output {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The API, reached as its administrator. */
export class Platform implements AsyncDisposable {
  readonly #directory: string;
  readonly #url: string;
  readonly #config: ManagementConfig;
  #api: ManagementApi | undefined;
  #client: RawClient | undefined;

  static async start(): Promise<Platform> {
    const [port = 0] = await freePorts(1);
    const platform = new Platform(port);
    await platform.begin();
    return platform;
  }

  private constructor(port: number) {
    this.#directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-trust-'));
    this.#url = `https://127.0.0.1:${port}`;
    this.#config = managementConfig(join(this.#directory, 'data'), {
      bindAddress: `127.0.0.1:${port}`,
      store: { driver: 'sqlite' },
      issuer: this.#url,
      tokenTtl: { default: '1h', max: '24h' },
      bootstrapKeyFile: join(this.#directory, 'administrator'),
    });
  }

  async begin(): Promise<void> {
    this.#api = await startManagementApi({
      config: this.#config,
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      version: '0.0.0-test',
      signal: new AbortController().signal,
    });
    const token = readFileSync(this.#config.bootstrapKeyFile, 'utf8').trim();
    this.#client = new RawClient({ url: this.#url, token, ca: this.ca });
  }

  /** As a crash or an update would be; {@link begin} starts it again over the same store. */
  async end(): Promise<void> {
    await this.#client?.[Symbol.asyncDispose]();
    await this.#api?.[Symbol.asyncDispose]();
    this.#api = undefined;
  }

  /** With another signing key, as after a leak: the one before is no longer published. */
  async replaceSigningKey(): Promise<void> {
    await this.end();
    const store = await SqliteStore.open({
      file: databaseFile(this.#config.dataDir),
      clock: systemClock,
      logger: silentLogger,
    });
    try {
      const { entries } = await store.list({ resource: SIGNING_KEYS });
      for (const { key, revision } of entries) await store.delete(key, revision);
    } finally {
      await store[Symbol.asyncDispose]();
    }
    await this.begin();
  }

  /** The flags with which `keys` reaches it. */
  get connection(): readonly string[] {
    return ['--server', this.#url, '--certificate-authority', join(this.#config.dataDir, 'ca.crt')];
  }

  get ca(): string {
    return readFileSync(join(this.#config.dataDir, 'ca.crt'), 'utf8');
  }

  /** A block of the page with the placeholders filled in; `folder` is where the page's files lie. */
  block(name: string, folder = this.#directory): string {
    const text = BLOCKS.get(name);
    if (text === undefined) throw new Error(`the page has no block called ${name}`);
    const { ca } = this;
    return text
      .replaceAll(PLACEHOLDERS.url, this.#url)
      .replaceAll(PLACEHOLDERS.folder, folder)
      .replaceAll(PLACEHOLDERS.certificate, (_all, indent: string) => ca.trim().replaceAll(/^/gm, indent));
  }

  /** A kubeconfig for the administrator, in a folder with the page's files. */
  folderWith(files: readonly string[]): string {
    const folder = mkdtempSync(join(this.#directory, 'page-'));
    writeFileSync(join(folder, 'ca.crt'), this.ca);
    for (const file of files) writeFileSync(join(folder, file), this.block(file, folder));
    const cluster = { server: this.#url, 'certificate-authority': 'ca.crt' };
    const token = readFileSync(this.#config.bootstrapKeyFile, 'utf8').trim();
    writeFileSync(join(folder, 'kubeconfig'), kubeconfigText('platform', cluster, { token }));
    return folder;
  }

  /** Creates what a block of the page says, with other members of its spec and another name where the test says so. */
  async create(block: string, name: string, spec: JsonObject = {}): Promise<JsonObject> {
    const { parse } = await import('yaml');
    const object = parse(this.block(block)) as { kind: string; spec: JsonObject }; // of the page
    return this.send('POST', `${pluralOf(object.kind)}`, {
      ...object,
      metadata: { name },
      spec: { ...object.spec, ...spec },
    });
  }

  /** The secret of a new key. */
  async key(block: string, name: string, spec: JsonObject = {}): Promise<string> {
    const object = (await this.create(block, name, spec)) as { spec: { key: string } }; // a 201
    return object.spec.key;
  }

  /** A token that a key creates for itself. */
  async token(key: string, spec: JsonObject = {}): Promise<string> {
    await using client = new RawClient({ url: this.#url, token: key, ca: this.ca });
    const path = '/apis/management.platform.sh/v1/directclusterendpointtokens';
    const { status, json, text } = await client.send({ method: 'POST', path, body: { metadata: {}, spec } });
    if (status !== 201 || !json) throw new Error(`no token: ${status} ${text}`);
    return (json['status'] as { token: string }).token; // a 201
  }

  async disable(name: string): Promise<void> {
    await this.send('PATCH', `ownedaccesskeys/${name}`, { spec: { disabled: true } });
  }

  async send(method: string, path: string, body: JsonObject): Promise<JsonObject> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const answer = await this.#client?.send({
      method,
      path: `/apis/management.platform.sh/v1/${path}`,
      headers: { 'content-type': type },
      body,
    });
    if (!answer?.json || answer.status >= 300) throw new Error(`${method} ${path}: ${answer?.text}`);
    return answer.json;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function pluralOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}

export interface Trust {
  /** Blocks with flags. */
  readonly flags: readonly string[];
  /** Blocks that are files in the folder of the page. */
  readonly files: readonly string[];
  /** The path of this API that is about the cluster, in place of the page's. */
  readonly target?: string;
  /** In place of the scope of the page's key for webhooks. */
  readonly webhookScope?: JsonObject;
  /** Texts of the page's files and flags that are others here. */
  readonly replace?: (text: string) => string;
  /** The name by which the cluster knows the user `alice`. */
  readonly alice?: string;
}

const PAGE_TARGET = '/kubernetes/cluster/cluster-a/';

/** The real cluster `cluster-a`, in which the user `alice` may read pods. */
export class TrustingCluster implements AsyncDisposable {
  readonly #folder: string;
  readonly #clusters: RealClusters;

  static async start(platform: Platform, trust: Trust): Promise<TrustingCluster> {
    const { flags, files, target = PAGE_TARGET, webhookScope, replace = (text) => text, alice } = trust;
    const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-trusting-'));
    writeFileSync(join(folder, 'ca.crt'), platform.ca);
    const webhooks = `webhooks-${folder.slice(-6).toLowerCase()}`;
    const key = await platform.key(
      'cluster-a-webhooks.yaml',
      webhooks,
      webhookScope === undefined ? {} : { scope: webhookScope },
    );
    writeFileSync(join(folder, 'key'), key, { mode: 0o600 });
    for (const file of files) {
      const text = platform.block(file, folder).replaceAll(PAGE_TARGET, target);
      writeFileSync(join(folder, file), replace(text));
    }
    const virtualFlags = flags.flatMap((name) => replace(platform.block(name, folder)).trim().split('\n'));
    const clusters = await startRealClusters({ host: false, virtualFlags });
    const cluster = new TrustingCluster(folder, clusters);
    await cluster.#grant(alice);
    return cluster;
  }

  private constructor(folder: string, clusters: RealClusters) {
    this.#folder = folder;
    this.#clusters = clusters;
  }

  /** Its address, the file with its authority, and kubectl. */
  get place(): { readonly url: string; readonly caFile: string; readonly kubectl: string } {
    const { virtual, kubectl } = this.#clusters;
    return { url: virtual.url, caFile: virtual.caFile, kubectl };
  }

  async #grant(user = 'alice'): Promise<void> {
    await this.#administer('create clusterrole pod-reader --verb=get,list --resource=pods');
    await this.#administer(`create clusterrolebinding alice --clusterrole=pod-reader --user=${user}`);
    await using admin = new TestCluster(this.#clusters.virtual.kubeconfigPath);
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }];
    await whenAuthorized(admin, { user, namespace: '', rules });
  }

  async #administer(command: string): Promise<void> {
    const { code, err } = await this.#run(this.#clusters.virtual.token, command);
    if (code !== 0) throw new Error(`kubectl ${command}: ${err}`);
  }

  /** Of the kube-apiserver; resolves when it is ready. */
  async restart(): Promise<void> {
    await this.#clusters.stop('virtual');
    await this.#clusters.start('virtual');
  }

  /** Changes nothing of the configuration in a file of the page. */
  addComment(file: string): void {
    appendFileSync(join(this.#folder, file), '# keys fetched again\n');
  }

  /** kubectl with this token and nothing else, as the page shows it. */
  kubectl(token: string, command: string): Promise<Output> {
    return this.#run(token, command);
  }

  /** The same of a client that knows nothing of the cluster yet. */
  kubectlWithoutCache(token: string, command: string): Promise<Output> {
    return this.#run(token, command, mkdtempSync(join(this.#folder, 'cache-')));
  }

  /** The lines after `$ ` of a block, one shell for all of them; answers what they print. */
  async commands(platform: Platform, block: string): Promise<{ printed: string; documented: string }> {
    const { virtual, kubectl } = this.#clusters;
    const lines = platform.block(block).trim().split('\n');
    const script = lines
      .filter((line) => line.startsWith('$ '))
      .map((line) => line.slice(2))
      .join('\n')
      .replaceAll('https://cluster-a.example.com:6443', virtual.url);
    const cwd = platform.folderWith(['ci.yaml', 'token.yaml']);
    copyFileSync(virtual.caFile, join(cwd, 'cluster-a.crt'));
    const env = {
      PATH: `${dirname(kubectl)}:${process.env['PATH']}`,
      KUBECONFIG: join(cwd, 'kubeconfig'),
      KUBECACHEDIR: join(cwd, 'cache'),
    };
    const printed = await new Promise<string>((resolve) => {
      execFile('sh', ['-ec', `exec 2>&1\n${script}`], { cwd, env }, (_error, out) => resolve(out.trim()));
    });
    return { printed, documented: lines.filter((line) => !line.startsWith('$ ')).join('\n') };
  }

  #run(token: string, command: string, cache = join(this.#folder, 'cache')): Promise<Output> {
    const { url, caFile } = this.#clusters.virtual;
    const args = [`--server=${url}`, `--certificate-authority=${caFile}`, `--token=${token}`];
    const env = { ...process.env, KUBECONFIG: '/dev/null', KUBECACHEDIR: cache };
    return new Promise((resolve) => {
      const all = [...args, ...command.split(' ')];
      execFile(this.#clusters.kubectl, all, { env }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, out, err });
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clusters[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
