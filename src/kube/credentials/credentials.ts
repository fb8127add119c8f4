/** Creates credentials from the user entry of a kubeconfig. */

import { existsSync, readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { TerminalError, messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/clock.ts';
import { isJsonObject, objectField, type JsonObject, type JsonValue } from '../../base/json.ts';
import type { ClientCertificate, Credentials, RequestHeaders } from '../access.ts';
import { readTextFile, textOf, type UserEntry } from './kubeconfig-file.ts';
import { pluginCredentials } from './plugin-credentials.ts';
import { TransportError } from '../types.ts';

/** Kubelets renew projected tokens long before they expire. client-go also rereads the file every minute. */
const TOKEN_FILE_LIFE_MS = 60_000;

/** Reads every file once, to detect wrong paths early. Throws `TerminalError`. */
export function createCredentials(entry: UserEntry, clock: Clock): Credentials {
  const { user } = entry;
  const impersonation = impersonationHeaders(entry);
  const certificate = certificateSource(entry);
  const tokenFile = textOf(user, 'tokenFile') ?? textOf(user, 'token-file');
  const fixed = fixedAuthorization(user);
  // As client-go: the token stands in for a file that is not there.
  if (tokenFile !== undefined && (fixed === undefined || existsSync(tokenFile)))
    return { certificate, ...tokenFileSource(tokenFile, entry, impersonation, clock) };
  if (fixed !== undefined) {
    return fixedSource({ authorization: fixed, ...impersonation }, certificate);
  }
  // As client-go: a certificate in the kubeconfig stands in for the plugin.
  const hasPlugin = isJsonObject(user['exec']) && certificate() === undefined;
  if (hasPlugin || isJsonObject(user['auth-provider'])) {
    return pluginCredentials({ entry, clock, impersonation, certificate });
  }
  return fixedSource(impersonation, certificate);
}

function fixedSource(headers: RequestHeaders, certificate: Credentials['certificate']): Credentials {
  // A new connection reads a renewed certificate file; nothing else here can be renewed.
  return { headers: () => headers, certificate, invalidate: () => false };
}

function fixedAuthorization(user: JsonObject): string | undefined {
  const token = textOf(user, 'token')?.trim();
  if (token !== undefined) return `Bearer ${token}`;
  const username = textOf(user, 'username');
  if (username === undefined) return undefined;
  const password = textOf(user, 'password') ?? '';
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function tokenFileSource(
  path: string,
  entry: UserEntry,
  ...[impersonation, clock]: [RequestHeaders, Clock]
): Pick<Credentials, 'headers' | 'invalidate'> {
  let headers = tokenHeaders(
    readTextFile(path, `users[${entry.name}].tokenFile`, entry.source),
    impersonation,
  );
  let readAtMs = clock.monotonicMs();
  const reread = (): boolean => {
    readAtMs = clock.monotonicMs();
    try {
      const next = tokenHeaders(readFileSync(path, 'utf8'), impersonation);
      const isNew = next['authorization'] !== headers['authorization'];
      headers = next;
      return isNew;
    } catch {
      return false; // the last token may still be valid; otherwise the server responds with 401
    }
  };
  return {
    headers() {
      if (clock.monotonicMs() - readAtMs > TOKEN_FILE_LIFE_MS) reread();
      return headers;
    },
    invalidate: reread,
  };
}

function tokenHeaders(token: string, impersonation: RequestHeaders): RequestHeaders {
  return { authorization: `Bearer ${token.trim()}`, ...impersonation };
}

function certificateSource(entry: UserEntry): Credentials['certificate'] {
  const { user, name, source } = entry;
  const read = (key: string): string | Buffer | undefined => {
    const data = textOf(user, `${key}-data`);
    if (data !== undefined) return Buffer.from(data, 'base64');
    const path = textOf(user, key);
    return path === undefined ? undefined : readTextFile(path, `users[${name}].${key}`, source);
  };
  const both = (): ClientCertificate | undefined => {
    const [cert, key] = [read('client-certificate'), read('client-key')];
    if (cert === undefined && key === undefined) return undefined;
    if (cert === undefined || key === undefined) {
      const missing = cert === undefined ? 'client-certificate' : 'client-key';
      throw new TerminalError(`${source}: users[${name}] has no ${missing}`);
    }
    return { cert, key };
  };
  const first = both();
  if (first === undefined) return () => undefined;
  checkPair(first, `${source}: users[${name}]`);
  return () => {
    try {
      return both();
    } catch (cause) {
      throw new TransportError(messageOf(cause), { cause });
    }
  };
}

function checkPair(pair: ClientCertificate, what: string): void {
  try {
    createSecureContext(pair);
  } catch (cause) {
    const why = messageOf(cause);
    throw new TerminalError(
      `${what}: client-certificate and client-key are not a PEM certificate and its key: ${why}`,
      { cause },
    );
  }
}

/** As client-go. Throws `TerminalError` for what would be left out without a user to impersonate. */
function impersonationHeaders({ user, name, source }: UserEntry): RequestHeaders {
  const as = textOf(user, 'as');
  if (as === undefined) {
    const alone = ['as-uid', 'as-groups', 'as-user-extra'].find((field) => user[field]);
    if (alone === undefined) return {};
    const problem = `users[${name}].${alone} has no effect without users[${name}].as`;
    throw new TerminalError(`${source}: ${problem}: name the user to impersonate`);
  }
  const uid = textOf(user, 'as-uid');
  const groups = textsOf(user['as-groups']);
  const extra = Object.entries(objectField(user, 'as-user-extra')).map(
    ([key, values]) => [`impersonate-extra-${headerKey(key)}`, textsOf(values)] as const,
  );
  return {
    'impersonate-user': as,
    ...(uid === undefined ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
    ...Object.fromEntries(extra),
  };
}

function textsOf(list: JsonValue | undefined): string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
}

/** What the name of a header cannot have, and `%`, is percent-encoded. */
function headerKey(key: string): string {
  return Buffer.from(key, 'utf8')
    .toString('latin1')
    .replaceAll(/[^\w!#$&'*+.^`|~-]/gu, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
