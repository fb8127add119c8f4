/** Assembles an API server: any kinds over any store. */

import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Logger } from '../../base/logger.ts';
import type { Store } from '../storage/store.ts';
import { listen, type Throttle } from './api-server.ts';
import type { AuditEvent } from '../request/audit-event.ts';
import type { ApiResponse } from '../request/api-response.ts';
import type { Authorizer } from '../request/authorizer.ts';
import type { ListenOptions, RequestListener, TlsPair } from './http-server.ts';
import type { ApiServerSeries } from '../metrics.ts';
import { MetaHandler, type ServerVersion } from '../request/meta-handler.ts';
import type { ObjectDeleter } from '../objects/object-deletion.ts';
import type { ObjectRegistry } from '../objects/object-registry.ts';
import { ObjectViews } from '../objects/object-view.ts';
import type { DefinitionTable } from '../objects/definition-table.ts';
import { ResourceHandler } from '../request/resource-handler.ts';
import type { ServerPath } from '../request/request-info.ts';
import type { Credentials, UserInfo } from '../user.ts';
import { YamlParser } from '../request/yaml-parser.ts';
import { WatchStreams } from '../watch/watch-streams.ts';

export interface StartOptions {
  readonly table: DefinitionTable;
  /** Owned by the caller: closing the server does not close it. */
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly authorizer: Authorizer;
  /** The user who sent a request; undefined: 401. Throws a `StatusError` for any other response. */
  authenticate(credentials: Credentials): UserInfo | undefined | Promise<UserInfo | undefined>;
  /** Splits the path of a URL into prefix and API path. Default: no prefixes. Undefined: 404. */
  splitPath?(path: string): ServerPath | undefined;
  /** Documents that need no authentication, by path. */
  readonly publicDocuments?: ReadonlyMap<string, () => Promise<ApiResponse>>;
  readonly version: ServerVersion;
  /** Over `store`. */
  readonly registry: ObjectRegistry;
  /** Owned by the caller, who closes it after the server. */
  readonly deleter: ObjectDeleter;
  /** Default: no rate limits. */
  readonly throttle?: Throttle;
  /** Receives the audit event of a request once its response is sent; of a watch, once it ends. Must not throw. */
  audit?(event: AuditEvent): void;
  readonly metrics?: ApiServerSeries;
  /** Wraps the request listener, such as with the faults of a test double. */
  wrapListener?(serve: RequestListener): RequestListener;
  /** Default 1 minute. */
  readonly bookmarkIntervalMs?: number;
  /** Defaults are in `limits.ts`. */
  readonly watchesMax?: number;
  readonly watchesPerUserMax?: number;
  readonly unreadResponsesBytesMax?: number;
  readonly listen?: ListenOptions;
}

export interface RunningServer {
  /** `127.0.0.1:40123` */
  readonly address: string;
  /** Number of open connections. */
  readonly connections: number;
  /** New connections use this certificate. */
  renewTls(pair: TlsPair): void;
  /** Ends the open watches of users whose rights have changed. */
  endWatches(isAffected: (user: UserInfo) => boolean): void;
  /** Resets every open connection; the server keeps running. */
  disconnect(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { table, store, registry, deleter, clock, random, logger, authorizer, bookmarkIntervalMs } = options;
  const views = new ObjectViews();
  const yaml = new YamlParser(clock);
  const meta = new MetaHandler(table, options.version);
  const { watchesMax, watchesPerUserMax } = options;
  const limits = {
    ...(bookmarkIntervalMs === undefined ? {} : { bookmarkIntervalMs }),
    ...(watchesMax === undefined ? {} : { watchesMax }),
    ...(watchesPerUserMax === undefined ? {} : { watchesPerUserMax }),
  };
  const watches = new WatchStreams({ store, clock, random, views, ...limits });
  const server = await listen(
    {
      meta,
      resources: new ResourceHandler({ table, registry, deleter, authorizer, clock, views, yaml }),
      watches,
      authenticate: (credentials) => options.authenticate(credentials),
      authorizer,
      splitPath: (path) => (options.splitPath ? options.splitPath(path) : { prefix: '', path }),
      publicDocuments: options.publicDocuments ?? new Map(),
      throttle: options.throttle,
      unreadResponsesBytesMax: options.unreadResponsesBytesMax,
      metrics: options.metrics,
      audit: options.audit && ((event) => options.audit?.(event)),
      wrapListener: options.wrapListener && ((serve) => options.wrapListener?.(serve) ?? serve),
      clock,
      logger,
    },
    options.listen,
  );
  meta.address = server.address;
  return {
    address: server.address,
    get connections() {
      return server.connections;
    },
    renewTls: (pair) => server.renewTls(pair),
    endWatches: (isAffected) => watches.closeOf(isAffected),
    disconnect: () => server.disconnect(),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await yaml[Symbol.asyncDispose]();
    },
  };
}
