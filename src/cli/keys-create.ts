/** `keys create`: flags → an OwnedAccessKey. */

import { userInfo } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../config/duration.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ApiClient, ApiConnection } from './api-client.ts';
import { memberOf, newKeyText, textIn, type KeyFormat } from './keys-output.ts';

export interface CreateOptions {
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
  readonly scopeProject: readonly string[];
  readonly scopeSpace: readonly Pair[];
  readonly scopeVirtualCluster: readonly Pair[];
  readonly scopeCluster: readonly string[];
  readonly scopeRole: readonly string[];
}

/** `PROJECT/NAME`. */
interface Pair {
  readonly project: string;
  readonly name: string;
}

const SCOPE_GROUP = 'Scope (without any, the key may do all that its owner may):';

export function addCreateOptions(command: Command): void {
  command
    .option('--name <name>', 'name of the key; else one is made')
    .option('--generate-name <prefix>', 'what a name that is made begins with', 'key-')
    .option('--display-name <text>', 'what people read; else the name')
    .option('--description <text>', 'what it is for')
    .option('--user <user>', 'whose key it is')
    .option('--team <team>', 'whose key it is: everybody in the team sees and changes it')
    .option('--subject <subject>', 'whose key it is, where that is neither a user nor a team')
    .option('--group <group>', 'groups besides those of the owner', collected, [])
    .addOption(
      new Option('--ttl <duration>', 'how long it is good for: 90d, 720h, 30m; 0 is for ever')
        .argParser(secondsOf)
        .default(30 * DAY_SECONDS, '30d'),
    )
    .option('--ttl-after-last-activity', 'count the time since the key was last used');
  const scope = <T>(flags: string, help: string, parse: (text: string, before: T[]) => T[]): void => {
    command.addOption(new Option(flags, help).argParser(parse).default([]).helpGroup(SCOPE_GROUP));
  };
  scope('--scope-project <project>', 'a project with all that is in it, * is every one', collected);
  scope('--scope-space <project/space>', 'a space of a project', pairs);
  scope('--scope-virtual-cluster <project/name>', 'a virtual cluster of a project', pairs);
  scope('--scope-cluster <cluster>', 'a connected cluster', collected);
  scope('--scope-role <role>', 'what a role may do, such as platformCLI', collected);
}

/** Prints the key. Rejects with `StatusError` when the server refuses. */
export async function createKey(
  client: ApiClient,
  connection: ApiConnection,
  options: CreateOptions,
): Promise<number> {
  const created = await client.send({ method: 'POST', path: 'ownedaccesskeys', body: keyObject(options) });
  process.stdout.write(newKeyText(created, options.output, connection));
  process.stderr.write(`${summary(created)}\n`);
  return 0;
}

function keyObject(options: CreateOptions): JsonObject {
  const { name, generateName, description, group, ttl } = options;
  const scope = scopeOf(options);
  return {
    apiVersion: 'management.platform.sh/v1',
    kind: 'OwnedAccessKey',
    metadata: name === undefined ? { generateName } : { name },
    spec: {
      displayName: options.displayName ?? name ?? `made by ${userInfo().username}`,
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

function scopeOf(options: CreateOptions): JsonObject | undefined {
  const { scopeProject, scopeSpace, scopeVirtualCluster, scopeCluster, scopeRole } = options;
  const scope: JsonObject = {};
  if (scopeProject.length > 0) scope['projects'] = scopeProject.map((project) => ({ project }));
  if (scopeSpace.length > 0) {
    scope['spaces'] = scopeSpace.map(({ project, name }) => ({ project, space: name }));
  }
  if (scopeVirtualCluster.length > 0) {
    scope['virtualClusters'] = scopeVirtualCluster.map(({ project, name }) => ({
      project,
      virtualCluster: name,
    }));
  }
  if (scopeCluster.length > 0) scope['clusters'] = scopeCluster.map((cluster) => ({ cluster }));
  if (scopeRole.length > 0) scope['roles'] = scopeRole.map((role) => ({ role }));
  return Object.keys(scope).length === 0 ? undefined : scope;
}

/** What is good to know, without the key. */
export function summary(created: JsonObject): string {
  const name = textIn(created, 'metadata', 'name');
  const ttl = memberOf(created, 'spec', 'ttl');
  const owner = ['user', 'team', 'subject']
    .map((field) => [field, textIn(created, 'spec', field)] as const)
    .find(([, value]) => value !== '');
  const life = typeof ttl === 'number' && ttl > 0 ? `good until ${endOf(created, ttl)}` : 'good for ever';
  return `key ${name} of ${owner?.join(' ') ?? 'nobody'}, ${life}; it is not shown again`;
}

function endOf(created: JsonObject, ttlSeconds: number): string {
  const madeAt = Date.parse(textIn(created, 'metadata', 'creationTimestamp'));
  const from = Number.isNaN(madeAt) ? Date.now() : madeAt;
  const isSliding = memberOf(created, 'spec', 'ttlAfterLastActivity') === true;
  const end = new Date(from + ttlSeconds * 1000);
  if (Number.isNaN(end.getTime())) return 'the end of days';
  return `${end.toISOString().replace(/\.\d+Z$/u, 'Z')}${isSliding ? ' unless it is used' : ''}`;
}

function collected(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

function pairs(text: string, before: readonly Pair[]): Pair[] {
  const [project = '', name = '', ...more] = text.split('/');
  if (project === '' || name === '' || more.length > 0) throw new InvalidArgumentError('Write PROJECT/NAME.');
  return [...before, { project, name }];
}

const DAY_SECONDS = 86_400;

/** Durations of Go, and whole days. */
function secondsOf(text: string): number {
  if (text === '0') return 0;
  const days = /^(\d{1,5})d$/u.exec(text)?.[1];
  const durationMs = days === undefined ? parseDuration(text) : Number(days) * DAY_SECONDS * 1000;
  if (durationMs === undefined) throw new InvalidArgumentError('Write a duration such as 90d, 720h or 30m.');
  const seconds = Math.floor(durationMs / 1000);
  if (seconds === 0) throw new InvalidArgumentError('It is shorter than a second; 0 alone means for ever.');
  return seconds;
}
