/** Composition root of the key and token API: opens the store, composes the modules, serves, and closes all of it in reverse order. */

import { randomBytes } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ListenOptions } from '../apiserver/http/http-server.ts';
import { startServer, type RunningServer } from '../apiserver/http/start-server.ts';
import { parseBindAddress } from '../base/bind-address.ts';
import type { ManagementConfig } from '../config/types.ts';
import { TerminalError, messageOf } from '../base/errors.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';
import { apiServerSeries } from '../apiserver/metrics.ts';
import { MeasuredStore } from '../apiserver/storage/measured-store.ts';
import { StoreError, type Store } from '../apiserver/storage/store.ts';
import { splitPath } from './authorization/target.ts';
import { BearerAuthenticator } from './bearer-authenticator.ts';
import { ensureFirstKeyFile } from './bootstrap/first-key-file.ts';
import { LocalAdministrator } from './bootstrap/local-administrator.ts';
import { openMasterKey } from './credentials/master-key.ts';
import { HostCluster, openStore } from './open-store.ts';
import { KEY_STORAGE } from './keys/resource/key-kind.ts';
import { WatchRevocation } from './keys/authentication/watch-revocation.ts';
import { composeModules, type Modules } from './compose.ts';
import { AuditLog } from './serving/audit-log.ts';
import { openServingCertificate } from './serving/certificates.ts';
import { publicDocuments } from './serving/public-documents.ts';
import { RequestLimits } from './serving/request-limits.ts';
import type { ServerVersion } from '../apiserver/request/meta-handler.ts';
import { SIGNING_KEYS } from './tokens/signing-key.ts';

export interface ManagementApiOptions {
  readonly config: ManagementConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Version of this program. */
  readonly version: string;
  /** Registry for its series; absent: nothing is measured. */
  readonly metrics?: SeriesRegistry | undefined;
  /** Aborts a start that waits for a cluster. */
  readonly signal: AbortSignal;
}

export interface ManagementApi extends AsyncDisposable {
  /** `https://127.0.0.1:8443`, as bound. */
  readonly url: string;
  /** Path of the authority that clients must trust; '' if the configuration names a certificate. */
  readonly caFile: string;
  /** False until the first key is created, by `keys bootstrap` for example. */
  readonly hasKeys: boolean;
  /** Resets every open connection, as a network failure does; the store stays open. */
  disconnect(): void;
}

/** Resolves when it listens. Rejects with a `TerminalError` for what a retry does not change: an address in use, an invalid file. */
export async function startManagementApi(options: ManagementApiOptions): Promise<ManagementApi> {
  try {
    return await start(options);
  } catch (error) {
    // During the start there is no client that could retry.
    throw error instanceof StoreError ? new TerminalError(error.message, { cause: error }) : error;
  }
}

async function start(options: ManagementApiOptions): Promise<ManagementApi> {
  await using undo = new AsyncDisposableStack();
  const { config, logger, clock } = options;
  await makeDataDir(config.dataDir, logger);
  const host = undo.use(new HostCluster(options));
  const opened = undo.use(await openStore(options, host));
  const store = options.metrics ? new MeasuredStore(opened, clock, options.metrics) : opened;
  const dependentResources = [KEY_STORAGE, SIGNING_KEYS];
  const masterKey = await openMasterKey({
    dataDir: config.dataDir,
    store,
    dependentResources,
    randomBytes,
    logger,
  });
  const audit = undo.use(new AuditLog({ path: join(config.dataDir, 'audit.log'), clock, logger }));
  const modules = composeModules({
    ...options,
    store,
    masterKey,
    host,
    audit: (event) => audit.record(event),
  });
  undo.defer(() => modules.stop());
  await modules.start();
  const local = new LocalAdministrator(masterKey.localAdministrator, clock);
  const server = undo.use(await serve({ ...options, store, audit, modules, local }));
  logger.info({ url: server.url, store: config.store.driver }, 'serving the key and token API');
  const parts = undo.move();
  return {
    ...server,
    get hasKeys() {
      return server.hasKeys;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const WORLD_WRITABLE = 0o002;

/** Mode 0700: it holds the master key, the database and the audit log. */
async function makeDataDir(dataDir: string, logger: Logger): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    if (((await stat(dataDir)).mode & WORLD_WRITABLE) !== 0) {
      logger.warn({ dataDir }, 'every local user can write to the data directory: chmod 700');
    }
  } catch (error) {
    const why = messageOf(error);
    throw new TerminalError(`managementApi.dataDir ${dataDir} cannot be created: ${why}`, { cause: error });
  }
}

interface ServeOptions extends ManagementApiOptions {
  readonly store: Store;
  readonly audit: AuditLog;
  readonly modules: Modules;
  readonly local: LocalAdministrator;
}

async function serve(options: ServeOptions): Promise<ManagementApi> {
  await using undo = new AsyncDisposableStack();
  const { config, clock, logger } = options;
  const { host, port } = parseBindAddress(config.bindAddress) ?? { host: '127.0.0.1', port: 0 };
  const certificate = undo.use(
    await openServingCertificate({
      ...config.tls,
      dataDir: config.dataDir,
      host,
      names: namesOf(config),
      clock,
      logger,
    }),
  );
  const server = undo.use(await listen(options, { host, port, tls: certificate.pair, drainMs: DRAIN_MS }));
  certificate.onRenewal((pair) => server.renewTls(pair));
  const ends = undo.use(
    new WatchRevocation({ clock, endWatches: (isConcerned) => server.endWatches(isConcerned) }),
  );
  options.modules.keys.index.onChange((change) => ends.changed(change));
  options.modules.keys.onExpired((key) => ends.expired(key));
  const parts = undo.move();
  return {
    url: `https://${server.address}`,
    caFile: certificate.authority === undefined ? '' : resolve(config.dataDir, 'ca.crt'),
    get hasKeys() {
      return options.modules.keys.index.size > 0;
    },
    disconnect: () => server.disconnect(),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Time for requests in flight when the API stops. */
const DRAIN_MS = 5_000;

/** The host of the issuer is a name of the server too. */
function namesOf({ issuer }: ManagementConfig): string[] {
  const name = URL.parse(issuer)?.hostname.replaceAll(/[[\]]/gu, '') ?? '';
  return name === '' ? [] : [name];
}

async function listen(
  { config, clock, random, logger, version, metrics, store, audit, modules, local }: ServeOptions,
  address: ListenOptions,
): Promise<RunningServer> {
  const { keys, authorizer, table } = modules;
  const authenticator = new BearerAuthenticator({ keys: keys.authenticator, local, host: modules.hostUsers });
  const gitVersion = serverVersion(version);
  if (config.bootstrapKeyFile !== '') {
    await ensureFirstKeyFile({
      file: config.bootstrapKeyFile,
      maxTtlMs: config.maxTtlMs,
      definition: keys.definition,
      registry: keys.registry,
      authenticate: async (key) => keys.authenticator.authenticate(key),
      logger,
    });
  }
  try {
    return await startServer({
      table,
      store,
      clock,
      random,
      logger,
      authorizer,
      authenticate: (credentials) => authenticator.authenticate(credentials),
      splitPath,
      publicDocuments: publicDocuments({ table, version: gitVersion, store, documents: modules.documents }),
      version: gitVersion,
      registry: keys.registry,
      deleter: keys.deleter,
      throttle: new RequestLimits(clock),
      audit: (event) => audit.record(event),
      ...(metrics ? { metrics: apiServerSeries(metrics, table) } : {}),
      listen: address,
    });
  } catch (error) {
    throw asListenError(error, config.bindAddress);
  }
}

const LISTEN_PROBLEMS: ReadonlySet<string> = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND']);

function asListenError(error: unknown, bindAddress: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!(error instanceof Error) || !LISTEN_PROBLEMS.has(code)) return error;
  const advice =
    code === 'EADDRINUSE' ? 'is it running already? Choose a free address' : 'choose another address';
  return new TerminalError(
    `cannot listen on managementApi.bindAddress ${bindAddress}: ${error.message}; ${advice}`,
    { cause: error },
  );
}

/** The Kubernetes version that the API corresponds to: kubectl warns about a version skew. */
const KUBERNETES_MINOR = '36';

/** `v1.36.0+endpoint-syncer.0.1.0`. */
function serverVersion(version: string): ServerVersion {
  return {
    major: '1',
    minor: KUBERNETES_MINOR,
    gitVersion: `v1.${KUBERNETES_MINOR}.0+endpoint-syncer.${version}`,
  };
}
