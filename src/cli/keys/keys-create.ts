/** `keys create` and `keys rotate`: the commands that print a new secret. */

import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { MANAGEMENT_API_VERSION } from '../../access-keys/identity.ts';
import { textAt, valueAt, type JsonObject } from '../../base/json.ts';
import type { ApiClient } from './keys-connection.ts';
import {
  newKeyText,
  type KeyFormat,
  printSecret,
  addScopeOptions,
  collected,
  scopeIn,
  type ScopeOptions,
  DAY_SECONDS,
  secondsIn,
} from './keys-options.ts';
import { tell } from '../output/terminal.ts';

interface CreateOptions extends ScopeOptions {
  readonly output: KeyFormat;
  readonly name?: string;
  readonly generateName: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly user?: string;
  readonly team?: string;
  readonly subject?: string;
  readonly group: readonly string[];
  readonly ttl: number;
  readonly ttlAfterLastActivity?: true;
}

const SCOPE_GROUP = 'Scope (default: no restriction; options may be repeated):';

export function addCreateOptions(command: Command): void {
  const lifetime = 'lifetime of the key, such as 90d or 720h; 0 means that it never expires';
  const ttl = new Option('--ttl <duration>', lifetime);
  command
    .option('--name <name>', 'name of the key; generated if omitted')
    .option('--generate-name <prefix>', 'prefix of the generated name', 'key-')
    .option('--display-name <text>', 'name shown in lists; default: the name')
    .option('--description <text>', 'what the key is used for')
    .option('--user <user>', 'user of the key')
    .option('--team <team>', 'team of the key; its members can read and change the key')
    .option('--subject <subject>', 'subject of the key, if it is neither a user nor a team')
    .option('--group <group>', 'extra group; may be repeated', collected, [])
    .addOption(ttl.argParser(secondsIn).default(30 * DAY_SECONDS, '30d'))
    .option('--ttl-after-last-activity', 'start the lifetime after the last use of the key');
  addScopeOptions(command, SCOPE_GROUP);
}

/** Prints the key. */
export async function createKey(client: ApiClient, options: CreateOptions): Promise<number> {
  const created = await client.send({ method: 'POST', path: 'ownedaccesskeys', body: keyObject(options) });
  printSecret(newKeyText(created, options.output, client.connection));
  tell(summary(created));
  return 0;
}

function keyObject(options: CreateOptions): JsonObject {
  const { name, generateName, description, group, ttl } = options;
  const scope = scopeIn(options);
  return {
    apiVersion: MANAGEMENT_API_VERSION,
    kind: 'OwnedAccessKey',
    metadata: name === undefined ? { generateName } : { name },
    spec: {
      displayName: options.displayName ?? name ?? `created by ${userInfo().username}`,
      ...(description !== undefined && { description }),
      ...ownerOf(options),
      type: 'User',
      ttl,
      ...(group.length > 0 && { groups: [...group] }),
      ...(options.ttlAfterLastActivity && { ttlAfterLastActivity: true }),
      ...(scope !== undefined && { scope }),
    },
  };
}

function ownerOf({ user, team, subject }: CreateOptions): JsonObject {
  return {
    ...(user !== undefined && { user }),
    ...(team !== undefined && { team }),
    ...(subject !== undefined && { subject }),
  };
}

export function namesOneOwner(options: CreateOptions): boolean {
  return Object.keys(ownerOf(options)).length === 1;
}

/** A summary of the key without its secret. */
export function summary(created: JsonObject): string {
  const name = textAt(created, 'metadata', 'name');
  const ttl = valueAt(created, ['spec', 'ttl']);
  const owner = ['user', 'team', 'subject']
    .map((field) => [field, textAt(created, 'spec', field)] as const)
    .find(([, value]) => value !== '');
  const life = typeof ttl === 'number' && ttl > 0 ? `expires ${endOf(created, ttl)}` : 'never expires';
  return `key ${name} of ${owner?.join(' ') ?? 'no subject'}, ${life}; it is not shown again`;
}

function endOf(created: JsonObject, ttlSeconds: number): string {
  const madeAt = Date.parse(textAt(created, 'metadata', 'creationTimestamp'));
  const from = Number.isNaN(madeAt) ? Date.now() : madeAt;
  const isSliding = valueAt(created, ['spec', 'ttlAfterLastActivity']) === true;
  const end = new Date(from + ttlSeconds * 1000);
  if (Number.isNaN(end.getTime())) return 'after the year 275760';
  return `${inSeconds(end)}${isSliding ? ' unless it is used' : ''}`;
}

function inSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/u, 'Z');
}

interface RotateOptions {
  readonly output: KeyFormat;
  /** Seconds. */
  readonly overlap: number;
}

/** Prints the new secret. */
export async function rotateKey(
  client: ApiClient,
  name: string,
  { output, overlap }: RotateOptions,
): Promise<number> {
  const nowMs = Date.now();
  const rotated = await client.send({
    method: 'POST',
    path: `ownedaccesskeys/${encodeURIComponent(name)}/rotate`,
    body: { overlapSeconds: overlap },
  });
  printSecret(newKeyText(rotated, output, client.connection));
  const until = inSeconds(new Date(nowMs + overlap * 1000));
  const old = overlap === 0 ? 'the old one no longer works' : `the old one works until ${until}`;
  tell(`key ${name} has a new secret, which is not shown again; ${old}`);
  return 0;
}
