/** Composes the modules of the API: keys, authorization and tokens, each with the parts of the others that it needs. */

import { randomBytes } from 'node:crypto';
import type { ApiResponse } from '../apiserver/request/api-response.ts';
import type { AuditEvent } from '../apiserver/request/audit-event.ts';
import type { Authorizer } from '../apiserver/request/request-info.ts';
import { META_TYPES, TypeTable } from '../apiserver/schema/object-schema.ts';
import { EVENT_DESCRIPTIONS, EVENT_TYPES } from '../apiserver/event-kinds.ts';
import { REVIEW_DESCRIPTIONS, REVIEW_TYPES } from '../apiserver/access-review.ts';
import { DefinitionTable, type ResourceDefinition } from '../apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../apiserver/user.ts';
import type { ManagementConfig } from '../config/config.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { Logger } from '../base/logger.ts';
import type { SeriesRegistry } from '../base/metrics/series.ts';
import type { Store } from '../apiserver/storage/store.ts';
import { SCOPE_DESCRIPTIONS, SCOPE_TYPES } from './authorization/scope-types.ts';
import type { MasterKey } from './credentials/master-key.ts';
import { createKeys, type Keys } from './keys/keys.ts';
import { KEY_DESCRIPTIONS, KEY_TYPES } from './keys/key-types.ts';
import { issuedTokens, keySeries } from './metrics.ts';
import type { HostCluster } from './open-store.ts';
import { createTokens } from './tokens/tokens.ts';
import { TOKEN_DESCRIPTIONS, TOKEN_TYPES } from './tokens/token-kind.ts';
import type { BearerParts } from './bearer-authenticator.ts';
import type { AdmissionRequest } from '../apiserver/objects/object-writer.ts';
import type { ClusterClient } from '../kube/types.ts';
import type { KeyIndex } from './types.ts';
import { ManagementAuthorizer } from './authorization/authorizer.ts';
import { DelegatedAuth, hostReviews } from './authorization/delegated-auth.ts';
import { reviewKinds, type TokenAuthenticators } from './authorization/reviews.ts';
import { WriteAuthorizer } from './authorization/write-authorizer.ts';

interface ModulesOptions {
  readonly config: ManagementConfig;
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly host: HostCluster;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly audit: (event: AuditEvent) => void;
  /** Absent: nothing is measured. */
  readonly metrics?: SeriesRegistry | undefined;
}

export interface Modules {
  readonly table: DefinitionTable;
  readonly authorizer: Authorizer;
  readonly keys: Keys;
  /** Authenticates tokens of the host cluster; undefined when delegated authentication is off. */
  readonly hostUsers: BearerParts['host'];
  /** Documents that need no credential, by path. */
  readonly documents: ReadonlyMap<string, () => Promise<ApiResponse>>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** kubectl reads and writes several objects as a `List` of this group version and accepts one only from a server that serves it. */
const CORE_V1 = { group: '', version: 'v1' };

export function composeModules(options: ModulesOptions): Modules {
  const { config, store, masterKey, host, clock, random, logger, metrics } = options;
  const types = new TypeTable([META_TYPES, EVENT_TYPES, REVIEW_TYPES, SCOPE_TYPES, KEY_TYPES, TOKEN_TYPES], {
    ...EVENT_DESCRIPTIONS,
    ...REVIEW_DESCRIPTIONS,
    ...SCOPE_DESCRIPTIONS,
    ...KEY_DESCRIPTIONS,
    ...TOKEN_DESCRIPTIONS,
  });
  const keys = createKeys({
    store,
    clock,
    random,
    randomBytes,
    logger,
    masterKey,
    types,
    maxTtlSeconds: Math.floor(config.maxTtl / 1000),
    audit: options.audit,
    authorizeWrite: (write) => access.authorizeWrite(write),
    authorizer: () => access.authorizer,
  });
  if (metrics) keySeries(metrics, keys.index, clock);
  const tokens = createTokens({
    store,
    seal: masterKey.seal,
    index: keys.index,
    clock,
    random,
    logger,
    types,
    issuer: config.issuer,
    ttls: seconds(config.tokenTtl),
    issued: metrics ? issuedTokens(metrics) : () => undefined,
  });
  const access = createAccess({
    types,
    index: keys.index,
    clock,
    host: config.delegatedAuth ? host.connected().client : undefined,
    authenticateKey: (token) => keys.authenticator.authenticate(token),
    verifyToken: (token) => tokens.verify(token),
    recordUse: (user) => keys.recordUse(user),
  });
  return {
    table: tableOf(keys, [tokens.definition, ...access.kinds]),
    authorizer: {
      // A denied request does not extend the life of a key.
      authorize: async (user, request) => {
        const decision = await access.authorizer.authorize(user, request);
        if (decision.isAllowed) keys.recordUse(user);
        return decision;
      },
      visibleTo: (user, definition) => access.authorizer.visibleTo(user, definition),
    },
    keys,
    hostUsers: access.hostUsers,
    documents: tokens.publicDocuments,
    start: async () => {
      await keys.start();
      await tokens.start();
    },
    stop: async () => {
      await tokens.stop();
      await keys.stop();
    },
  };
}

function tableOf(keys: Keys, others: readonly ResourceDefinition[]): DefinitionTable {
  return new DefinitionTable([keys.definition, keys.events, ...others], [CORE_V1], [keys.coreEvents]);
}

function seconds(ttlMs: ManagementConfig['tokenTtl']): ManagementConfig['tokenTtl'] {
  return { default: Math.floor(ttlMs.default / 1000), max: Math.floor(ttlMs.max / 1000) };
}

interface AccessOptions extends TokenAuthenticators {
  /** Holds `META_TYPES` and `REVIEW_TYPES`. */
  readonly types: TypeTable;
  readonly index: KeyIndex;
  readonly clock: Clock;
  /** The host cluster; undefined: its tokens are not accepted. */
  readonly host: Pick<ClusterClient, 'request'> | undefined;
}

export interface Access {
  readonly authorizer: ManagementAuthorizer;
  /** The review kinds that are served besides keys and tokens. */
  readonly kinds: readonly ResourceDefinition[];
  /** Throws 403 for a write to an access key that the user may not make. */
  authorizeWrite(write: AdmissionRequest): Promise<void>;
  /** Authenticates tokens of the host cluster; undefined: they are not accepted. */
  readonly hostUsers:
    | { authenticate(token: string, address?: string): Promise<UserInfo | undefined> }
    | undefined;
}

export function createAccess(options: AccessOptions): Access {
  const { index, clock } = options;
  const host = options.host && new DelegatedAuth(hostReviews(options.host), clock);
  const authorizer = new ManagementAuthorizer({ index, clock, host });
  const writes = new WriteAuthorizer(index, clock, host);
  return {
    authorizer,
    kinds: reviewKinds(options.types, authorizer, options),
    authorizeWrite: (write) => writes.authorize(write),
    hostUsers: host,
  };
}
