/** Credentials of an exec plugin or an auth provider. Uses the authenticators of @kubernetes/client-node but for OIDC, and adds limits: one call at
 * a time, a deadline, a pause between renewals.
 */

import { spawn } from 'node:child_process';
import { loadAuthenticator, type User } from './client-node-parts.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, objectField, type JsonObject } from '../../base/json.ts';
import type { ClientCertificate, Credentials, RequestHeaders } from '../access.ts';
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

const PLUGIN_TIMEOUT_MS = 60_000;
/** A token or a certificate has a few thousand characters. */
const PRINTED_MAX = 256 * 1024;
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
    this.#user = pluginUser(options.entry);
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
      const authenticator = this.#oidc ?? (await (this.#authenticator ??= createAuthenticator(this.#user)));
      await authenticator.applyAuthentication(this.#user, applied);
    } catch (cause) {
      this.#authenticator = undefined;
      const why =
        cause instanceof Error ? cause.message.trim().replace(/\s+/g, ' ').slice(0, 500) : String(cause);
      throw new TransportError(`${this.#what} failed: ${why}${this.#hint()}`, { cause });
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

  #hint(): string {
    const exec = this.#options.entry.user['exec'];
    const hint = isJsonObject(exec) ? exec['installHint'] : undefined;
    return typeof hint === 'string' && hint !== '' ? `; ${hint.trim().slice(0, 500)}` : '';
  }
}

async function createAuthenticator(user: User): Promise<Authenticator> {
  if (user.exec !== undefined && user.exec !== null) return await createExecAuthenticator();
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

async function createExecAuthenticator(): Promise<Authenticator> {
  const auth = await loadAuthenticator.exec();
  const bounded = (command: string, args: readonly string[] | undefined, options: object): unknown => {
    const plugin = spawn(command, args ?? [], {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: PLUGIN_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    // The class takes what the plugin printed for the whole reason, which may be nothing.
    let isSilent = true;
    let printed = 0;
    plugin.stderr.once('data', () => (isSilent = false));
    const count = (text: string | Buffer): void => {
      printed += text.length;
      if (printed <= PRINTED_MAX) return;
      plugin.kill('SIGKILL');
      // Its own children may go on printing.
      for (const stream of [plugin.stdout, plugin.stderr]) stream.destroy();
    };
    for (const stream of [plugin.stdout, plugin.stderr]) stream.on('data', count);
    plugin.once('close', (code, signal) => {
      const how = signal === null ? `exited with ${code}` : `was ended by ${signal}`;
      if (printed > PRINTED_MAX) plugin.stderr.emit('data', `it printed more than ${PRINTED_MAX} characters`);
      else if (code !== 0 && isSilent) plugin.stderr.emit('data', `it printed no error, and ${how}`);
    });
    return plugin;
  };
  // A plugin that hangs must not hang the daemon; the class takes its `spawn` from this field and has no option for a deadline.
  Object.assign(auth, { execFn: bounded });
  return auth as Authenticator; // its options are those of https, of which it sets what Applied has
}

/** client-node's form of the entry, with the information that every exec plugin receives (KUBERNETES_EXEC_INFO). */
function pluginUser({ user, name, cluster }: UserEntry): User {
  const { exec, 'auth-provider': authProvider } = user;
  if (!isJsonObject(exec)) return { name, authProvider };
  const info = {
    apiVersion: exec['apiVersion'] ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec['provideClusterInfo'] === true ? { cluster } : {}) },
  };
  const env = Array.isArray(exec['env']) ? exec['env'].filter(isJsonObject) : [];
  const execInfo: JsonObject = { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) };
  return { name, exec: { ...exec, env: [...env, execInfo] } };
}
