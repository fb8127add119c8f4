/** Credentials of an exec plugin or of the auth provider `oidc`: one call at a time, and a pause between renewals. */

import type { Clock } from '../../base/clock.ts';
import type { ClientCertificate, Credentials, RequestHeaders } from '../access.ts';
import { ExecPlugin } from './exec-plugin.ts';
import type { UserEntry } from './kubeconfig-file.ts';
import { OidcProvider } from './oidc-provider.ts';
import { TransportError } from '../types.ts';

export interface PluginOptions {
  readonly entry: UserEntry;
  readonly clock: Clock;
  readonly impersonation: RequestHeaders;
  /** The certificate in the kubeconfig; a certificate of the plugin takes precedence. */
  readonly certificate: Credentials['certificate'];
}

interface Authenticator {
  applyAuthentication(applied: Applied): Promise<void>;
  /** What it returned is not accepted any more. */
  forget(): void;
}

export interface Applied {
  readonly headers: Record<string, string>;
  cert?: string;
  key?: string;
}

/** How long a credential is used before the authenticator is called again, which checks its expiry. */
const FRESH_MS = 5000;
/** The minimum interval between renewals of a credential that the server rejects. */
const RENEWAL_PAUSE_MS = 10_000;

export class PluginCredentials implements Credentials {
  readonly #options: PluginOptions;
  readonly #what: string;
  readonly #authenticator: Authenticator;
  #applied: Applied | undefined;
  #headers: RequestHeaders = {};
  #freshUntilMs = -Infinity;
  #fetching: Promise<Applied> | undefined;
  #renewedAtMs = -Infinity;

  constructor(options: PluginOptions) {
    const { entry, clock } = options;
    const { name, fields, source } = entry.user;
    const isExec = 'exec' in fields;
    this.#options = options;
    this.#what = `the credential plugin of user ${name} (${isExec ? 'exec' : 'oidc'}) in ${source}`;
    this.#authenticator = isExec ? new ExecPlugin(entry, clock) : new OidcProvider(entry, clock);
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
    this.#authenticator.forget();
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
      await this.#authenticator.applyAuthentication(applied);
    } catch (cause) {
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
