/** One process of the API over Secrets of a host cluster, as a pod would run it. */

import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/base/clock.ts';
import { isJsonObject } from '../../src/base/json.ts';
import { openLocalAdministrator } from '../../src/access-keys/credentials/master-key.ts';
import { RawClient } from '../contract/raw-client.ts';
import { KEYS_PATH } from '../access-keys/composed-api.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/compile');

export interface ApiProcessOptions {
  readonly dataDir: string;
  /** Of the host cluster. */
  readonly kubeconfig: string;
  readonly namespace: string;
}

export class ApiProcess implements AsyncDisposable {
  readonly url: string;
  readonly #dataDir: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  readonly #clients = new AsyncDisposableStack();
  /** For all keys: each request has its own header. */
  readonly #client: RawClient;

  private constructor(dataDir: string, child: ChildProcess, url: string) {
    this.#dataDir = dataDir;
    this.#child = child;
    this.#exit = child.exitCode === null ? once(child, 'close') : Promise.resolve();
    this.url = url;
    const ca = readFileSync(join(dataDir, 'ca.crt'), 'utf8');
    this.#client = this.#clients.use(new RawClient({ url, ca }));
  }

  /** Replicas share one master key, which the installation provides. */
  static shareMasterKey(dataDirs: readonly string[]): void {
    const key = randomBytes(32).toString('base64');
    for (const dataDir of dataDirs) {
      mkdirSync(dataDir, { mode: 0o700 });
      writeFileSync(join(dataDir, 'master.key'), `${key}\n`, { mode: 0o600 });
    }
  }

  /** Resolves when it listens; rejects with its output when it does not. */
  static async start({ dataDir, kubeconfig, namespace }: ApiProcessOptions): Promise<ApiProcess> {
    const config = {
      endpointSyncer: { host: { kubeconfig, namespace } },
      managementApi: {
        bindAddress: '127.0.0.1:0',
        issuer: 'https://keys.example.com',
        dataDir,
        bootstrapKeyFile: join(dataDir, 'first.key'),
        store: { driver: 'kubernetes' },
      },
    };
    const file = join(dataDir, 'config.yaml');
    writeFileSync(file, JSON.stringify(config)); // JSON is YAML
    const child = spawn(process.execPath, [join(ROOT, 'src/main.ts'), 'api', '--config', file], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
    });
    let stderr = '';
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^server: (.*)$/u.exec(line)?.[1];
      if (url !== undefined) return new ApiProcess(dataDir, child, url);
    }
    throw new Error(`the API did not start: ${stderr}`);
  }

  as(token?: string): RawClient {
    const ca = readFileSync(join(this.#dataDir, 'ca.crt'), 'utf8');
    return this.#clients.use(new RawClient({ url: this.url, ca, ...(token === undefined ? {} : { token }) }));
  }

  /** May do everything, for a minute. */
  async administrator(): Promise<RawClient> {
    const local = await openLocalAdministrator(this.#dataDir, systemClock);
    if (local === undefined) throw new Error('there is no master key');
    return this.as(local.credential());
  }

  /** A new key of the user u. */
  async makeKey(name: string): Promise<string> {
    const spec = { displayName: name, ttl: 0, type: 'User', user: 'u' };
    const client = await this.administrator();
    const { json, text } = await client.send({
      method: 'POST',
      path: KEYS_PATH,
      body: { metadata: { name }, spec },
    });
    const created = json?.['spec'];
    const key = isJsonObject(created) ? created['key'] : undefined;
    if (typeof key !== 'string') throw new Error(`no key was created: ${text}`);
    return key;
  }

  /** Of a list with this key: 200, or 401. */
  async statusOf(key: string): Promise<number> {
    const headers = { authorization: `Bearer ${key}` };
    return (await this.#client.send({ method: 'GET', path: KEYS_PATH, headers })).status;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#clients.disposeAsync();
  }
}
