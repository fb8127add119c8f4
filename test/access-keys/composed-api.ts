/** The whole key and token API over a memory store, with TLS, and clients for it. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as z from 'zod';
import { managementSchema, type ManagementConfig } from '../../src/access-keys/config.ts';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { SeriesRegistry } from '../../src/base/metrics/series.ts';
import { systemRandom } from '../../src/base/random.ts';
import { openLocalAdministrator } from '../../src/access-keys/credentials/master-key.ts';
import { startManagementApi, type ManagementApi } from '../../src/access-keys/management-api.ts';
import { silentLogger, type Logger } from '../../src/base/logger.ts';
import { RawClient } from '../contract/raw-client.ts';

export const KEYS_PATH = '/apis/management.platform.sh/v1/ownedaccesskeys';
export const TOKENS_PATH = '/apis/management.platform.sh/v1/directclusterendpointtokens';

export interface Composed extends AsyncDisposable {
  readonly api: ManagementApi;
  readonly dataDir: string;
  /** PEM. */
  readonly ca: string;
  /** The local administrator, who can read the master key and may do everything. */
  readonly administrator: RawClient;
  /** A client with this bearer token, or with none. */
  as(token: string | undefined): RawClient;
  /** Creates a key, by default of the user u and without expiry, and returns it with a client. */
  key(name: string, spec?: JsonObject): Promise<MadeKey>;
}

export interface MadeKey {
  readonly text: string;
  readonly client: RawClient;
}

export interface ComposedOptions {
  readonly config?: ManagementSettings;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: SeriesRegistry;
  /** Default: a folder that goes with the API. */
  readonly dataDir?: string;
}

/** The section `managementApi` as in a file, and the host cluster. */
type ManagementSettings = NonNullable<z.input<typeof managementSchema>> &
  Partial<Pick<ManagementConfig, 'host'>>;

/** The configuration of a test, nothing of which outlives it. */
export function managementConfig(
  dataDir: string,
  { host = { kubeconfig: '', context: '', namespace: '' }, ...section }: ManagementSettings = {},
): ManagementConfig {
  const api = managementSchema.parse({
    enabled: true,
    bindAddress: '127.0.0.1:0',
    dataDir,
    store: { driver: 'memory' },
    issuer: 'https://keys.example.com',
    ...section,
  });
  return { ...api, host };
}

export async function startComposed(options: ComposedOptions = {}): Promise<Composed> {
  await using undo = new AsyncDisposableStack();
  const { clock = systemClock, logger = silentLogger } = options;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'endpoint-syncer-api-')));
  if (options.dataDir === undefined) undo.defer(() => rm(dataDir, { recursive: true }));
  const api = undo.use(
    await startManagementApi({
      config: managementConfig(dataDir, options.config),
      clock,
      random: systemRandom,
      logger,
      metrics: options.metrics,
      version: '0.0.0',
      signal: new AbortController().signal,
    }),
  );
  const ca = await readFile(join(dataDir, 'ca.crt'), 'utf8');
  const local = await openLocalAdministrator(dataDir, clock);
  if (local === undefined) throw new Error('the API has created no master key');
  const clients = undo.use(new AsyncDisposableStack());
  const as = (token: string | undefined): RawClient =>
    clients.use(new RawClient({ url: api.url, ca, ...(token === undefined ? {} : { token }) }));
  // Valid for a minute; a test on a busy machine takes longer.
  const administrator = clients.use(
    new RawClient({
      url: api.url,
      ca,
      get token() {
        return local.credential();
      },
    }),
  );
  const parts = undo.move();
  return {
    api,
    dataDir,
    ca,
    administrator,
    as,
    key: async (name, spec = {}) => {
      const text = await makeKey(administrator, name, spec);
      return { text, client: as(text) };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function makeKey(administrator: RawClient, name: string, spec: JsonObject): Promise<string> {
  const owner = ['user', 'team', 'subject'].some((field) => Object.hasOwn(spec, field)) ? {} : { user: 'u' };
  const { json, status } = await administrator.send({
    method: 'POST',
    path: KEYS_PATH,
    body: { metadata: { name }, spec: { displayName: name, ttl: 0, type: 'User', ...owner, ...spec } },
  });
  const created = json?.['spec'];
  const text = isJsonObject(created) ? created['key'] : undefined;
  if (typeof text === 'string') return text;
  throw new Error(`the key ${name} was not created: ${status} ${JSON.stringify(json)}`);
}
