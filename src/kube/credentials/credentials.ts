/** Creates credentials from the user of a kubeconfig. */

import { createSecureContext } from 'node:tls';
import { messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/clock.ts';
import { listField, objectField, text, type JsonObject } from '../../base/json.ts';
import { headerBytes, type ClientCertificate, type Credentials, type RequestHeaders } from '../access.ts';
import { entryError, readTextFile, textOf, type NamedEntry, type UserEntry } from './kubeconfig-file.ts';
import { checkAuthProvider } from './oidc-provider.ts';
import { PluginCredentials } from './plugin-credentials.ts';
import { TransportError } from '../types.ts';

/** Kubelets renew projected tokens long before they expire. client-go also rereads the file every minute. */
const TOKEN_FILE_LIFE_MS = 60_000;

/** Reads every file once, to detect wrong paths early. `entry.user`: one that `checkUser` takes. Throws `TerminalError`. */
export function createCredentials(entry: UserEntry, clock: Clock): Credentials {
  const { user } = entry;
  const impersonation = impersonationHeaders(user);
  const certificate = certificateSource(user);
  const token = tokenHeader(user);
  const basic = basicHeader(user);
  const tokenFile = textOf(user.fields, 'tokenFile');
  if (tokenFile !== undefined && basic !== undefined)
    throw entryError(
      user,
      'username',
      'is set beside tokenFile, and only one can be sent; remove one of them',
    );
  checkAuthProvider(user);
  if (tokenFile !== undefined)
    return { certificate, ...tokenFileSource(tokenFile, { user, token, impersonation, clock }) };
  const authorization = token ?? basic;
  if (authorization !== undefined) return fixedSource({ authorization, ...impersonation }, certificate);
  // As client-go: a certificate in the kubeconfig stands in for an exec plugin.
  const hasPlugin = 'exec' in user.fields ? certificate() === undefined : 'auth-provider' in user.fields;
  return hasPlugin
    ? new PluginCredentials({ entry, clock, impersonation, certificate })
    : fixedSource(impersonation, certificate);
}

/** For a server without TLS, to which no credential is sent. Throws `TerminalError`. */
export function impersonationAlone(user: NamedEntry): Credentials {
  return fixedSource(impersonationHeaders(user), () => undefined);
}

function fixedSource(headers: RequestHeaders, certificate: Credentials['certificate']): Credentials {
  // A new connection reads a renewed certificate file; nothing else here can be renewed.
  return { headers: () => headers, certificate, invalidate: () => false };
}

function tokenHeader(user: NamedEntry): string | undefined {
  const token = textOf(user.fields, 'token');
  return token && headerValue(`Bearer ${token}`, user, 'token');
}

function basicHeader({ fields }: NamedEntry): string | undefined {
  const username = textOf(fields, 'username');
  return username && `Basic ${Buffer.from(`${username}:${text(fields, 'password')}`).toString('base64')}`;
}

interface TokenFile {
  readonly user: NamedEntry;
  /** Sent while the file has none. */
  readonly token: string | undefined;
  readonly impersonation: RequestHeaders;
  readonly clock: Clock;
}

/** The token of the file. What was read last may still be valid where the file cannot be read; otherwise the server responds with 401. */
function tokenFileSource(
  path: string,
  { user, token, impersonation, clock }: TokenFile,
): Pick<Credentials, 'headers' | 'invalidate'> {
  const read = (): string => {
    const content = readTextFile(path, user, 'tokenFile').trim();
    if (content === '')
      throw entryError(user, 'tokenFile', `names an empty file, ${path}; write the token into it`);
    return headerValue(`Bearer ${content}`, user, 'tokenFile');
  };
  let authorization = token ?? read();
  let readAtMs = -Infinity;
  const reread = (): boolean => {
    readAtMs = clock.monotonicMs();
    const last = authorization;
    try {
      authorization = read();
    } catch {
      return false;
    }
    return authorization !== last;
  };
  reread();
  return {
    headers() {
      if (clock.monotonicMs() - readAtMs > TOKEN_FILE_LIFE_MS) reread();
      return { authorization, ...impersonation };
    },
    invalidate: reread,
  };
}

function certificateSource(user: NamedEntry): Credentials['certificate'] {
  const { fields } = user;
  const hasOne = ['client-certificate', 'client-certificate-data'].some(
    (field) => text(fields, field) !== '',
  );
  if (!hasOne) return () => undefined;
  const read = (field: string): string | Buffer => {
    const data = textOf(fields, `${field}-data`);
    return data === undefined ? readTextFile(text(fields, field), user, field) : Buffer.from(data, 'base64');
  };
  const both = (): ClientCertificate => ({ cert: read('client-certificate'), key: read('client-key') });
  checkPair(both(), user);
  return () => {
    try {
      return both();
    } catch (cause) {
      throw new TransportError(messageOf(cause), { cause });
    }
  };
}

function checkPair(pair: ClientCertificate, user: NamedEntry): void {
  try {
    createSecureContext(pair);
  } catch (cause) {
    const field = 'client-certificate' in user.fields ? 'client-certificate' : 'client-certificate-data';
    const problem = `and its key are not a PEM certificate and its key: ${messageOf(cause)}`;
    throw entryError(user, field, problem, cause);
  }
}

function impersonationHeaders(user: NamedEntry): RequestHeaders {
  const { fields } = user;
  const as = textOf(fields, 'as');
  if (as === undefined) return {};
  const valuesOf = (object: JsonObject, name: string, field: string): string[] =>
    listField(object, name)
      .filter((value) => typeof value === 'string')
      .map((value) => headerValue(value, user, field));
  const uid = textOf(fields, 'as-uid');
  const groups = valuesOf(fields, 'as-groups', 'as-groups');
  const extra = objectField(fields, 'as-user-extra');
  const extraHeaders = Object.keys(extra).map(
    (key) => [`impersonate-extra-${headerKey(key)}`, valuesOf(extra, key, 'as-user-extra')] as const,
  );
  return {
    'impersonate-user': headerValue(as, user, 'as'),
    ...(uid === undefined ? {} : { 'impersonate-uid': headerValue(uid, user, 'as-uid') }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
    ...Object.fromEntries(extraHeaders),
  };
}

/** Throws `TerminalError` for what no HTTP header may have. */
function headerValue(value: string, user: NamedEntry, field: string): string {
  const bytes = headerBytes(value);
  if (bytes !== undefined) return bytes;
  throw entryError(
    user,
    field,
    'has a line break or another character that no HTTP header may have; remove it',
  );
}

/** What the name of a header cannot have, and `%`, is percent-encoded. */
function headerKey(key: string): string {
  return Buffer.from(key, 'utf8')
    .toString('latin1')
    .replaceAll(/[^\w!#$&'*+.^`|~-]/gu, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
