/** Credentials of an exec plugin or an auth provider: one call at a time, and a pause between renewals. */

import { loadAuthenticator, type User } from './client-node-parts.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, objectField } from '../../base/json.ts';
import type { ClientCertificate, Credentials, RequestHeaders } from '../access.ts';
import { ExecPlugin } from './exec-plugin.ts';
import { textOf, type UserEntry } from './kubeconfig-file.ts';
import { OidcProvider } from './oidc-provider.ts';
import { TransportError } from '../types.ts';

export interface PluginOptions {
  readonly entry: UserEntry;
  readonly clock: Clock;
  readonly impersonation: RequestHeaders;
  /** The certificate in the kubeconfig; a certificate of the plugin takes precedence. */
  readonly certificate: Credentials['certificate'];
}

/** The interface of client-node's authenticators. */
interface Authenticator {
  applyAuthentication(user: User, options: Applied): Promise<void>;
}

interface Applied {
  headers: Record<string, string>;
  cert?: string;
  key?: string;
}

/** How long a credential is used before the authenticator is called again, which checks its expiry. */
const FRESH_MS = 5000;
/** The minimum interval between renewals of a credential that the server rejects. */
const RENEWAL_PAUSE_MS = 10_000;

export function pluginCredentials(options: PluginOptions): Credentials {
  return new PluginCredentials(options);
}

class PluginCredentials implements Credentials {
  readonly #options: PluginOptions;
  readonly #user: User;
  readonly #what: string;
  /** Kept when its token is rejected: it has the newest refresh token. */
  readonly #oidc: OidcProvider | undefined;
  readonly #exec: ExecPlugin | undefined;
  #authenticator: Promise<Authenticator> | undefined;
  #applied: Applied | undefined;
  #headers: RequestHeaders = {};
  #freshUntilMs = -Infinity;
  #fetching: Promise<Applied> | undefined;
  #renewedAtMs = -Infinity;

  constructor(options: PluginOptions) {
    const { name, user } = options.entry;
    this.#options = options;
    const provider = user['auth-provider'];
    const kind = isJsonObject(provider) ? (textOf(provider, 'name') ?? '') : 'exec';
    this.#what = `the credential plugin of user ${name} (${kind})`;
    this.#user = { name, authProvider: provider };
    if (isJsonObject(user['exec'])) this.#exec = new ExecPlugin(options.entry, options.clock);
    if (kind !== 'oidc' || !isJsonObject(provider)) return;
    this.#oidc = new OidcProvider(objectField(provider, 'config'), options.entry, options.clock);
  }

  headers(): RequestHeaders | Promise<RequestHeaders> {
    if (this.#options.clock.monotonicMs() < this.#freshUntilMs) return this.#headers;
    return this.#fetch().then(() => this.#headers);
  }

  async certificate(): Promise<ClientCertificate | undefined> {
    const { cert, key } = await this.#fetch();
    return cert !== undefined && key !== undefined ? { cert, key } : await this.#options.certificate();
  }

  invalidate(): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#renewedAtMs < RENEWAL_PAUSE_MS) return false;
    this.#renewedAtMs = nowMs;
    this.#freshUntilMs = -Infinity;
    this.#exec?.forget();
    this.#authenticator = undefined; // drops its cached credential
    return true;
  }

  /** One at a time: concurrent callers share the result. */
  #fetch(): Promise<Applied> {
    if (this.#applied !== undefined && this.#options.clock.monotonicMs() < this.#freshUntilMs) {
      return Promise.resolve(this.#applied);
    }
    this.#fetching ??= this.#callPlugin().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #callPlugin(): Promise<Applied> {
    const applied: Applied = { headers: {} };
    try {
      const authenticator =
        this.#exec ?? this.#oidc ?? (await (this.#authenticator ??= createAuthenticator(this.#user)));
      await authenticator.applyAuthentication(this.#user, applied);
    } catch (cause) {
      this.#authenticator = undefined;
      const why =
        cause instanceof Error ? cause.message.trim().replace(/\s+/g, ' ').slice(0, 700) : String(cause);
      throw new TransportError(`${this.#what} failed: ${why}`, { cause });
    }
    const authorization = applied.headers['Authorization'];
    if (authorization === undefined && applied.cert === undefined) {
      throw new TransportError(`${this.#what} returned neither a token nor a certificate`);
    }
    this.#headers = {
      ...(authorization === undefined ? {} : { authorization }),
      ...this.#options.impersonation,
    };
    this.#applied = applied;
    this.#freshUntilMs = this.#options.clock.monotonicMs() + FRESH_MS;
    return applied;
  }
}

async function createAuthenticator(user: User): Promise<Authenticator> {
  const provider: unknown = user.authProvider;
  const name = isJsonObject(provider) ? provider['name'] : undefined;
  switch (name) {
    case 'gcp':
    case 'azure':
      return (await loadAuthenticator[name]()) as Authenticator; // its options are those of https, of which it sets what Applied has
    default:
      throw new Error(`there is no auth provider ${JSON.stringify(name)}; use an exec plugin`);
  }
}
