/** Composition root of the key and token API: opens the store, composes the modules, serves, and closes all of it in reverse order. */

import { RequestLimits } from '../apiserver/http/client-limits.ts';
import { randomBytes } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ListenOptions } from '../apiserver/http/http-server.ts';
import { startServer, type RunningServer } from '../apiserver/http/api-server.ts';
import { parseBindAddress } from '../base/bind-address.ts';
import type { ManagementConfig } from './config.ts';
import { codeOf, TerminalError, messageOf } from '../base/errors.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';
import { ApiServerSeries, measuredStore } from '../apiserver/metrics.ts';
import { StoreError, type Store } from '../apiserver/storage/store.ts';
import { splitPath } from './authorization/grants.ts';
import { isDelegated, SENDER_RULES } from './identity.ts';
import { ensureFirstKeyFile } from './credentials/first-key.ts';
import { LocalAdministrator, openMasterKey, type MasterKey } from './credentials/master-key.ts';
import { HostCluster, openStore } from './open-store.ts';
import { KEY_STORAGE, KEY_TYPES } from './keys/key-kind.ts';
import { WatchRevocation } from './keys/watch-revocation.ts';
import { AuditTrail } from './serving/audit-log.ts';
import { openServingCertificate } from './serving/certificates.ts';
import { type ServerVersion, MetaHandler } from '../apiserver/request/meta-handler.ts';
import { SIGNING_KEYS } from './tokens/key-ring.ts';
import { textResponse, type ApiResponse } from '../apiserver/request/api-response.ts';
import type { AuditEvent } from '../apiserver/request/request-info.ts';
import { META_TYPES, TypeTable } from '../apiserver/schema/object-schema.ts';
import { EVENT_TYPES } from '../apiserver/event-kinds.ts';
import { REVIEW_TYPES } from '../apiserver/access-review.ts';
import { DefinitionTable } from '../apiserver/objects/resource-definition.ts';
import { SCOPE_TYPES } from './authorization/scope-validation.ts';
import { composeKeys } from './keys/keys.ts';
import { KeyActivity } from './keys/key-activity.ts';
import { KeyIndex } from './keys/key-index.ts';
import { bearerAuthenticator } from './keys/key-authenticator.ts';
import { issuedTokens, keySeries } from './metrics.ts';
import { composeTokens, TOKEN_TYPES } from './tokens/token-kind.ts';
import { ManagementAuthorizer } from './authorization/authorizer.ts';
import { DelegatedAuth, hostReviews } from './authorization/delegated-auth.ts';
import { reviewKinds } from './authorization/reviews.ts';
import { WriteAuthorizer } from './authorization/write-authorizer.ts';
import { isDirectToken } from './tokens/token.ts';

export interface ManagementApiOptions {
  readonly config: ManagementConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly version: string;
  /** Registry for its series; absent: nothing is measured. */
  readonly metrics?: SeriesRegistry | undefined;
  readonly signal: AbortSignal;
}

export interface ManagementApi extends AsyncDisposable {
  /** `https://127.0.0.1:8443`, as bound. */
  readonly url: string;
  /** Path of the authority that clients must trust; '' if the configuration names a certificate. */
  readonly caFile: string;
  /** False until the first key is created, by `keys bootstrap` for example. */
  readonly hasKeys: boolean;
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
  checkIssuer(config);
  await makeDataDir(config.dataDir, logger);
  const cluster = undo.use(new HostCluster(options));
  const opened = undo.use(await openStore(options, cluster));
  const store = options.metrics ? measuredStore(opened, clock, options.metrics) : opened;
  const dependentResources = [KEY_STORAGE, SIGNING_KEYS];
  const { dataDir } = config;
  const masterKey = await openMasterKey({ dataDir, store, dependentResources, randomBytes, logger });
  const { maxSize: fileBytesMax, maxFiles: filesKept } = config.auditLog;
  const audit = undo.use(new AuditTrail({ folder: dataDir, clock, logger, fileBytesMax, filesKept }));
  const record = audit.record.bind(audit);
  const modules = composeModules({ ...options, store, masterKey, host: cluster, audit: record });
  const { keys, tokens } = modules;
  undo.defer(() => keys.stop());
  await keys.start();
  undo.defer(() => tokens.stop());
  await tokens.start();
  const { host, port } = parseBindAddress(config.bindAddress) ?? { host: '127.0.0.1', port: 0 };
  const names = namesOf(config);
  const certificate = undo.use(
    await openServingCertificate({ ...config.tls, dataDir, host, names, clock, logger }),
  );
  const local = new LocalAdministrator(masterKey.localAdministrator, clock);
  const address = { host, port, tls: certificate.pair, drainMs: DRAIN_MS };
  const server = undo.use(await listen({ ...options, ...modules, store, audit: record, local, address }));
  certificate.onRenewal((pair) => server.renewTls(pair));
  const ends = undo.use(
    new WatchRevocation({ clock, endWatches: (isConcerned) => server.endWatches(isConcerned) }),
  );
  keys.index.onChange((change) => ends.changed(change));
  // Secrets that were rotated before this start.
  for (const key of keys.index.all()) ends.changed({ now: key, before: undefined });
  keys.onExpired((key) => ends.expired(key));
  const url = `https://${server.address}`;
  logger.info({ url, store: config.store.driver }, 'serving the key and token API');
  const parts = undo.move();
  return {
    url,
    caFile: certificate.authority === undefined ? '' : resolve(dataDir, 'ca.crt'),
    get hasKeys() {
      return keys.index.size > 0;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

/** Without an issuer it is derived from the address, and `:9443` has no host. */
function checkIssuer({ issuer, bindAddress }: ManagementConfig): void {
  if (URL.canParse(issuer)) return;
  throw new TerminalError(
    `managementApi.bindAddress ${JSON.stringify(bindAddress)} has no host for the default issuer of tokens: ` +
      'set managementApi.issuer to the URL at which clusters reach this API',
  );
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

const DRAIN_MS = 5_000;

/** The host of the issuer is a name of the server too. */
function namesOf({ issuer }: ManagementConfig): string[] {
  const name = URL.parse(issuer)?.hostname.replaceAll(/[[\]]/gu, '') ?? '';
  return name === '' ? [] : [name];
}

interface ServeOptions extends ManagementApiOptions, ReturnType<typeof composeModules> {
  readonly store: Store;
  readonly local: LocalAdministrator;
  readonly address: ListenOptions;
  readonly audit: (event: AuditEvent) => void;
}

async function listen(options: ServeOptions): Promise<RunningServer> {
  const { config, clock, logger, store, metrics, local, keys, table, hostUsers } = options;
  const documents = options.tokens.publicDocuments;
  const version = serverVersion(options.version);
  if (config.bootstrapKeyFile !== '') {
    await ensureFirstKeyFile({
      file: config.bootstrapKeyFile,
      maxTtlMs: config.maxTtl,
      definition: keys.definition,
      registry: keys.registry,
      digests: keys.digests,
      authenticate: async (key) => keys.authenticator.authenticate(key),
      logger,
    });
  }
  try {
    return await startServer({
      table,
      logger,
      authorizer: options.authorizer,
      authenticate: bearerAuthenticator({ keys: keys.authenticator, local, host: hostUsers, isDirectToken }),
      splitPath,
      publicDocuments: publicDocuments(documents, new MetaHandler(table, version), { store, clock }),
      version,
      registry: keys.registry,
      throttle: new RequestLimits(clock, SENDER_RULES),
      rechecksWatchesOf: isDelegated,
      audit: options.audit,
      ...(metrics ? { metrics: new ApiServerSeries(metrics, table) } : {}),
      listen: options.address,
    });
  } catch (error) {
    throw asListenError(error, config.bindAddress);
  }
}

const LISTEN_PROBLEMS: ReadonlySet<string> = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND']);

function asListenError(error: unknown, bindAddress: string): unknown {
  const code = codeOf(error);
  if (!(error instanceof Error) || !LISTEN_PROBLEMS.has(code)) return error;
  const advice =
    code === 'EADDRINUSE' ? 'is it running already? Choose a free address' : 'choose another address';
  return new TerminalError(
    `cannot listen on managementApi.bindAddress ${bindAddress}: ${error.message}; ${advice}`,
    { cause: error },
  );
}

/** The Kubernetes version that the API corresponds to: kubectl warns about a version skew. */
const KUBERNETES_MINOR = '37';

function serverVersion(version: string): ServerVersion {
  return {
    major: '1',
    minor: KUBERNETES_MINOR,
    gitVersion: `v1.${KUBERNETES_MINOR}.0+endpoint-syncer.${version}`,
  };
}

type Document = () => Promise<ApiResponse>;

/**
 * Documents that need no credential, by path: those for verifiers of tokens (`documents`), and those that a kube-apiserver serves to
 * unauthenticated clients.
 */
export function publicDocuments(
  documents: ReadonlyMap<string, Document>,
  meta: MetaHandler,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): ReadonlyMap<string, Document> {
  const ok: Document = () => Promise.resolve(textResponse(200, 'ok'));
  return new Map([
    ...documents,
    ['/version', () => Promise.resolve(meta.version())],
    ['/livez', ok],
    // Not of the store: a restart, which a liveness probe causes, does not free a full disk.
    ['/healthz', ok],
    ['/readyz', keptFor(READINESS_MS, clock, () => readiness(store))],
  ]);
}

/** A probe needs no credential and asks the store, which may be the host cluster: the probes of a second share one. */
const READINESS_MS = 1000;

function keptFor(forMs: number, clock: Clock, probe: Document): Document {
  let known: { readonly answer: Promise<ApiResponse>; untilMs: number } | undefined;
  return () => {
    if (known !== undefined && clock.monotonicMs() < known.untilMs) return known.answer;
    const started = { answer: probe(), untilMs: Infinity };
    known = started;
    void started.answer.finally(() => (started.untilMs = clock.monotonicMs() + forMs)).catch(() => undefined);
    return started.answer;
  };
}

async function readiness(store: Store): Promise<ApiResponse> {
  try {
    await store.revision();
    await store.checkWritable();
    return textResponse(200, 'ok');
  } catch {
    return textResponse(503, 'the store is not writable\n');
  }
}

interface ModulesOptions extends ManagementApiOptions {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly host: HostCluster;
  readonly audit: (event: AuditEvent) => void;
}

/** kubectl reads and writes several objects as a `List` of this group version and accepts one only from a server that serves it. */
const CORE_V1 = { group: '', version: 'v1' };

function composeModules(options: ModulesOptions) {
  const { config, store, masterKey, clock, logger, metrics } = options;
  const types = new TypeTable([META_TYPES, EVENT_TYPES, REVIEW_TYPES, SCOPE_TYPES, KEY_TYPES, TOKEN_TYPES]);
  const activity = new KeyActivity({ store, clock, logger });
  const index = new KeyIndex(store, activity);
  if (metrics) keySeries(metrics, index, clock);
  const hostUsers = config.delegatedAuth
    ? new DelegatedAuth(hostReviews(options.host.connected().client), clock)
    : undefined;
  const authorizer = new ManagementAuthorizer({ index, activity, clock, host: hostUsers });
  const shared = { ...options, types, index };
  const keys = composeKeys({
    ...shared,
    randomBytes,
    maxTtlSeconds: Math.floor(config.maxTtl / 1000),
    activity,
    authorizer,
    writes: new WriteAuthorizer(index, clock, hostUsers),
  });
  const tokens = composeTokens({
    ...shared,
    seal: masterKey.seal,
    issuer: config.issuer,
    ttls: {
      default: Math.floor(config.tokenTtl.default / 1000),
      max: Math.floor(config.tokenTtl.max / 1000),
    },
    issued: metrics ? issuedTokens(metrics) : () => undefined,
  });
  const reviews = reviewKinds(types, authorizer, {
    authenticateKey: (token) => keys.authenticator.authenticate(token),
    verifyToken: (token) => tokens.verify(token),
  });
  const kinds = [keys.definition, keys.events, tokens.definition, ...reviews];
  const table = new DefinitionTable(kinds, [CORE_V1], [keys.coreEvents]);
  return { table, authorizer, keys, tokens, hostUsers };
}
