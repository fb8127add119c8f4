/**
 * The auth provider `oidc` of kubeconfigs, as client-go has it: the id-token of the file, and after its expiry those that the refresh-token gets.
 * Renewed tokens are written into the file, as client-go does: the provider may accept a refresh token once.
 */

import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../base/errors.ts';
import { objectField, ownValue, parseJson, isJsonObject, textAt, type JsonObject } from '../../base/json.ts';
import type { Clock } from '../../base/clock.ts';
import { plainAccess, type RequestHeaders, type ServerAccess } from '../access.ts';
import { Transport } from '../client/transport.ts';
import { isBase64 } from './kubeconfig-fields.ts';
import { hasCertificate, NO_CERTIFICATE } from './kubeconfig-rules.ts';
import { entryError, readTextFile, textOf, type NamedEntry, type UserEntry } from './kubeconfig-file.ts';
import { proxyFromEnvironment } from './proxy-environment.ts';
import { StoredTokens, type Tokens } from './stored-tokens.ts';

const TIMEOUT_MS = 30_000;
/** Of the provider's description, and of its tokens. */
const RESPONSE_BYTES_MAX = 1024 * 1024;
/** A token that expires sooner is renewed. */
const EXPIRY_MARGIN_MS = 10_000;

export class OidcProvider {
  readonly #config: JsonObject;
  readonly #entry: UserEntry;
  readonly #clock: Clock;
  readonly #stored: StoredTokens;
  #tokens: Tokens;
  /** Those of the file when it was last read or written. */
  #inFile: Tokens;
  #isWarned = false;

  /** `entry.user`: one that {@link checkAuthProvider} takes. */
  constructor(entry: UserEntry, clock: Clock) {
    const config = configOf(entry.user);
    this.#config = config;
    this.#entry = entry;
    this.#clock = clock;
    this.#stored = new StoredTokens(entry.files, entry.user.name);
    this.#tokens = { idToken: textAt(config, 'id-token'), refreshToken: textAt(config, 'refresh-token') };
    this.#inFile = this.#tokens;
  }

  async applyAuthentication(applied: { readonly headers: Record<string, string> }): Promise<void> {
    applied.headers['Authorization'] = `Bearer ${await this.#token()}`;
  }

  /** The newest refresh token is kept, and an id-token is used until it expires. */
  forget(): void {}

  /** An id-token that has not expired. */
  async #token(): Promise<string> {
    if (this.#isFresh()) return this.#tokens.idToken;
    using _lock = await this.#stored.lock();
    this.#reread();
    if (!this.#isFresh()) await this.#renew();
    return this.#tokens.idToken;
  }

  #isFresh(): boolean {
    return this.#clock.now() + EXPIRY_MARGIN_MS < expiryMs(this.#tokens.idToken);
  }

  /** Another program may have used the refresh token, and stored the next one. */
  #reread(): void {
    const found = this.#stored.read();
    if (found === undefined || isDeepStrictEqual(found, this.#inFile)) return;
    this.#inFile = found;
    this.#tokens = found;
  }

  async #renew(): Promise<void> {
    const { refreshToken } = this.#tokens;
    if (refreshToken === '') throw new Error('the id-token has expired, and there is no refresh-token');
    const issuer = textAt(this.#config, 'idp-issuer-url').replace(/\/+$/u, '');
    const { body: found } = await this.#request(`${issuer}/.well-known/openid-configuration`);
    const endpoint = textAt(found, 'token_endpoint');
    if (endpoint === '') throw new Error(`${issuer} names no token_endpoint`);
    const renewed = await this.#refresh(endpoint, refreshToken);
    const idToken = textAt(renewed, 'id_token');
    if (idToken === '') throw new Error(`${endpoint} returned no id_token`);
    // Without another one, the refresh token stays valid (RFC 6749 6).
    this.#tokens = { idToken, refreshToken: textAt(renewed, 'refresh_token') || refreshToken };
    this.#store();
  }

  #store(): void {
    const {
      user: { name },
      files,
      warn,
    } = this.#entry;
    try {
      if (files.length > 0) this.#stored.write(this.#tokens);
      this.#inFile = this.#tokens;
    } catch (error) {
      if (this.#isWarned || this.#tokens.refreshToken === this.#inFile.refreshToken) return;
      this.#isWarned = true;
      warn(
        `the identity provider has replaced the refresh-token of user ${name}, and the new one cannot be stored: ${messageOf(error)}; ` +
          'when this program ends, log in again',
      );
    }
  }

  async #refresh(endpoint: string, refreshToken: string): Promise<JsonObject> {
    const id = textAt(this.#config, 'client-id');
    const secret = textAt(this.#config, 'client-secret');
    const grant = { grant_type: 'refresh_token', refresh_token: refreshToken };
    const inForm = { ...grant, client_id: id, ...(secret === '' ? {} : { client_secret: secret }) };
    const first =
      secret === '' ? undefined : await this.#request(endpoint, grant, { authorization: basic(id, secret) });
    // Some providers take the secret in the form alone.
    const { status, body } =
      first !== undefined && first.status < 300 ? first : await this.#request(endpoint, inForm);
    if (status < 300) return body;
    const why = textAt(body, 'error_description') || textAt(body, 'error');
    throw new Error(`${endpoint} refused to refresh the id-token: ${status} ${why}`.trim());
  }

  async #request(
    address: string,
    form?: Record<string, string>,
    headers: RequestHeaders = {},
  ): Promise<{ readonly status: number; readonly body: JsonObject }> {
    const url = new URL(address);
    await using transport = new Transport({
      access: this.#accessTo(url, headers),
      clock: this.#clock,
      metrics: { requested: () => undefined },
      userAgent: 'endpoint-syncer',
      responseBytesMax: RESPONSE_BYTES_MAX,
    });
    const { status, text } = await transport.send({
      method: form === undefined ? 'GET' : 'POST',
      path: url.pathname + url.search,
      isSecret: true,
      timeoutMs: TIMEOUT_MS,
      ...(form && {
        body: new URLSearchParams(form).toString(),
        contentType: 'application/x-www-form-urlencoded',
      }),
    });
    const body = parsedObject(text);
    if (body === undefined) throw new Error(`the response of ${address} is not a JSON object`);
    return { status, body };
  }

  #accessTo(url: URL, headers: RequestHeaders): ServerAccess {
    const access = plainAccess(url.origin);
    const ca = authorityOf(this.#entry.user);
    return {
      ...access,
      proxyUrl: proxyFromEnvironment(url, process.env),
      credentials: { ...access.credentials, headers: () => headers },
      trust: () => ({ isUnverified: false, ...(ca === undefined ? {} : { ca }) }),
    };
  }
}

/** As client-go checks the entry when it loads a kubeconfig, whether or not its tokens are needed. Throws `TerminalError`. */
export function checkAuthProvider(user: NamedEntry): void {
  const provider = ownValue(user.fields, 'auth-provider');
  if (provider === undefined) return;
  const name = textAt(provider, 'name');
  const plugin = Object.hasOwn(PLUGINS, name) ? PLUGINS[name] : undefined;
  if (name !== 'oidc')
    throw entryError(
      user,
      'auth-provider',
      `${JSON.stringify(name)} is not supported; use ${plugin ?? 'an exec plugin'}`,
    );
  for (const field of ['idp-issuer-url', 'client-id'])
    if (textAt(provider, 'config', field) === '')
      throw entryError(user, `auth-provider.config.${field}`, 'is missing; add it, or log in again');
  authorityOf(user);
}

/** Of the providers that kubectl had before 1.26, what is used instead. */
const PLUGINS: Readonly<Record<string, string>> = {
  gcp: 'the exec plugin gke-gcloud-auth-plugin',
  azure: 'the exec plugin kubelogin (https://github.com/Azure/kubelogin)',
};

function configOf({ fields }: NamedEntry): JsonObject {
  return objectField(objectField(fields, 'auth-provider'), 'config');
}

/** Of the provider, in PEM. Throws `TerminalError`. */
function authorityOf(user: NamedEntry): string | Buffer | undefined {
  const [data, file] = ['-data', ''].map((end) => textOf(configOf(user), `idp-certificate-authority${end}`));
  const field = `auth-provider.config.idp-certificate-authority${data === undefined ? '' : '-data'}`;
  if (data === undefined && file === undefined) return undefined;
  const pem =
    data === undefined
      ? readTextFile(file ?? '', user, field)
      : isBase64(data) && Buffer.from(data, 'base64');
  if (pem === false || !hasCertificate(pem)) throw entryError(user, field, NO_CERTIFICATE);
  return pem;
}

/** Undefined: it is not a JSON object. The error of the parser would show the text, which may have a token. */
function parsedObject(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** 0 for a token that cannot be read, so that it is renewed. */
function expiryMs(token: string): number {
  const claims = parsedObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const seconds = claims && ownValue(claims, 'exp');
  return typeof seconds === 'number' ? seconds * 1000 : 0;
}

/** RFC 6749 2.3.1. */
function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;
}
