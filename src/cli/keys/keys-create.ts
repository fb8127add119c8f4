/** `keys create`: flags → an OwnedAccessKey. */

import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import type { JsonObject } from '../../base/json.ts';
import type { ApiClient, ApiConnection } from './api-client.ts';
import { memberOf, newKeyText, textIn, type KeyFormat } from './keys-output.ts';
import { addScopeOptions, collected, scopeIn, type ScopeOptions } from './keys-scope.ts';
import { DAY_SECONDS, secondsIn } from './seconds-option.ts';
import { printSecret } from './secret-output.ts';

export interface CreateOptions extends ScopeOptions {
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

const SCOPE_GROUP =
  'Scope (without one, the key may do everything that its subject may; options may be repeated):';

export function addCreateOptions(command: Command): void {
  command
    .option('--name <name>', 'name of the key; generated if omitted')
    .option('--generate-name <prefix>', 'prefix of the generated name', 'key-')
    .option('--display-name <text>', 'name shown in lists; default: the name')
    .option('--description <text>', 'what the key is used for')
    .option('--user <user>', 'user that the key speaks for')
    .option('--team <team>', 'team that the key speaks for; its members see and change the key')
    .option('--subject <subject>', 'subject that the key speaks for, if it is neither a user nor a team')
    .option('--group <group>', 'group besides those of the subject; may be repeated', collected, [])
    .addOption(
      new Option('--ttl <duration>', 'lifetime, such as 90d, 720h or 30m; 0 means that it never expires')
        .argParser(secondsIn)
        .default(30 * DAY_SECONDS, '30d'),
    )
    .option('--ttl-after-last-activity', 'count the lifetime from the last use of the key');
  addScopeOptions(command, SCOPE_GROUP);
}

/** Prints the key. Rejects with `StatusError` when the server refuses. */
export async function createKey(
  client: ApiClient,
  connection: ApiConnection,
  options: CreateOptions,
): Promise<number> {
  const created = await client.send({ method: 'POST', path: 'ownedaccesskeys', body: keyObject(options) });
  printSecret(newKeyText(created, options.output, connection));
  process.stderr.write(`${summary(created)}\n`);
  return 0;
}

function keyObject(options: CreateOptions): JsonObject {
  const { name, generateName, description, group, ttl } = options;
  const scope = scopeIn(options);
  return {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: name === undefined ? { generateName } : { name },
    spec: {
      displayName: options.displayName ?? name ?? `created by ${userInfo().username}`,
      ...(description === undefined ? {} : { description }),
      ...ownerOf(options),
      type: 'User',
      ttl,
      ...(group.length === 0 ? {} : { groups: [...group] }),
      ...(options.ttlAfterLastActivity ? { ttlAfterLastActivity: true } : {}),
      ...(scope === undefined ? {} : { scope }),
    },
  };
}

function ownerOf({ user, team, subject }: CreateOptions): JsonObject {
  return {
    ...(user === undefined ? {} : { user }),
    ...(team === undefined ? {} : { team }),
    ...(subject === undefined ? {} : { subject }),
  };
}

export function namesOneOwner(options: CreateOptions): boolean {
  return Object.keys(ownerOf(options)).length === 1;
}

/** The key in a sentence, without its secret. */
export function summary(created: JsonObject): string {
  const name = textIn(created, 'metadata', 'name');
  const ttl = memberOf(created, 'spec', 'ttl');
  const owner = ['user', 'team', 'subject']
    .map((field) => [field, textIn(created, 'spec', field)] as const)
    .find(([, value]) => value !== '');
  const life = typeof ttl === 'number' && ttl > 0 ? `expires ${endOf(created, ttl)}` : 'never expires';
  return `key ${name} of ${owner?.join(' ') ?? 'no subject'}, ${life}; it is not shown again`;
}

function endOf(created: JsonObject, ttlSeconds: number): string {
  const madeAt = Date.parse(textIn(created, 'metadata', 'creationTimestamp'));
  const from = Number.isNaN(madeAt) ? Date.now() : madeAt;
  const isSliding = memberOf(created, 'spec', 'ttlAfterLastActivity') === true;
  const end = new Date(from + ttlSeconds * 1000);
  if (Number.isNaN(end.getTime())) return 'after the year 275760';
  return `${end.toISOString().replace(/\.\d+Z$/u, 'Z')}${isSliding ? ' unless it is used' : ''}`;
}
