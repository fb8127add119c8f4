/**
 * The auth provider `oidc` of kubeconfigs, as client-go has it: the id-token of the file, and after its expiry those that the refresh-token gets.
 * The authenticator of client-node refreshes before each use once it has refreshed, loses a refresh-token that the provider does not replace,
 * and never sends the client-secret.
 */

import { ownValue, parseJson, isJsonObject, textAt, type JsonObject } from '../../base/json.ts';
import type { Clock } from '../../base/clock.ts';
import { plainAccess, type RequestHeaders, type ServerAccess } from '../access.ts';
import { Transport } from '../client/transport.ts';
import { readTextFile, textOf } from './kubeconfig-file.ts';
import { proxyFromEnvironment } from './proxy-environment.ts';

const TIMEOUT_MS = 30_000;
/** Of the provider's description, and of its tokens. */
const RESPONSE_BYTES_MAX = 1024 * 1024;
/** A token that expires sooner is renewed. */
const EXPIRY_MARGIN_MS = 10_000;

export class OidcProvider {
  readonly #config: JsonObject;
  readonly #what: { readonly entry: string; readonly source: string };
  readonly #clock: Clock;
  #idToken: string;
  #refreshToken: string;

  /** `config`: of the auth provider. `what`: the entry of the kubeconfig, and the file, for messages. */
  constructor(config: JsonObject, what: { readonly entry: string; readonly source: string }, clock: Clock) {
    this.#config = config;
    this.#what = what;
    this.#clock = clock;
    this.#idToken = textAt(config, 'id-token');
    this.#refreshToken = textAt(config, 'refresh-token');
  }

  async applyAuthentication(
    _: unknown,
    applied: { readonly headers: Record<string, string> },
  ): Promise<void> {
    applied.headers['Authorization'] = `Bearer ${await this.#token()}`;
  }

  /** An id-token that has not expired. */
  async #token(): Promise<string> {
    if (this.#clock.now() + EXPIRY_MARGIN_MS < expiryMs(this.#idToken)) return this.#idToken;
    if (this.#refreshToken === '') throw new Error('the id-token has expired, and there is no refresh-token');
    const issuer = this.#required('idp-issuer-url').replace(/\/+$/u, '');
    const { body: found } = await this.#request(`${issuer}/.well-known/openid-configuration`);
    const endpoint = textAt(found, 'token_endpoint');
    if (endpoint === '') throw new Error(`${issuer} names no token_endpoint`);
    const renewed = await this.#refresh(endpoint);
    const idToken = textAt(renewed, 'id_token');
    if (idToken === '') throw new Error(`${endpoint} returned no id_token`);
    this.#idToken = idToken;
    // Without another one, the refresh token stays valid (RFC 6749 6).
    this.#refreshToken = textAt(renewed, 'refresh_token') || this.#refreshToken;
    return idToken;
  }

  async #refresh(endpoint: string): Promise<JsonObject> {
    const id = this.#required('client-id');
    const secret = textAt(this.#config, 'client-secret');
    const grant = { grant_type: 'refresh_token', refresh_token: this.#refreshToken };
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
    const data = textOf(this.#config, 'idp-certificate-authority-data');
    const file = textOf(this.#config, 'idp-certificate-authority');
    const { entry, source } = this.#what;
    const ca =
      data === undefined
        ? file && readTextFile(file, `${entry}.idp-certificate-authority`, source)
        : Buffer.from(data, 'base64');
    return {
      ...access,
      proxyUrl: proxyFromEnvironment(url, process.env),
      credentials: { ...access.credentials, headers: () => headers },
      trust: () => ({ isUnverified: false, ...(ca === undefined ? {} : { ca }) }),
    };
  }

  #required(field: string): string {
    const value = textAt(this.#config, field);
    if (value === '') throw new Error(`the id-token has expired, and there is no ${field}`);
    return value;
  }
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
