/** Options that several `keys` commands have: the scope, and values such as durations. */

import { X509Certificate } from 'node:crypto';
import { fchmodSync, fstatSync } from 'node:fs';
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { stringify } from 'yaml';
import { formatJson } from '../output/listing.ts';
import { type JsonObject, textAt } from '../../base/json.ts';
import { parseDuration } from '../../config/units.ts';
import { TerminalError, messageOf } from '../../base/errors.ts';
import type { ApiConnection } from './keys-connection.ts';

export interface ScopeOptions {
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

export function addScopeOptions(command: Command, helpGroup: string): void {
  const scope = <T>(flags: string, help: string, parse: (text: string, before: T[]) => T[]): void => {
    command.addOption(new Option(flags, help).argParser(parse).default([]).helpGroup(helpGroup));
  };
  scope(
    '--scope-project <project>',
    'project with all its spaces and virtual clusters; * selects all',
    collected,
  );
  scope('--scope-space <project/space>', 'space of a project', pairs);
  scope('--scope-virtual-cluster <project/name>', 'virtual cluster of a project', pairs);
  scope('--scope-cluster <cluster>', 'connected cluster; * selects all', collected);
  scope('--scope-role <role>', 'role such as platformCLI', collected);
}

/** Undefined without flags: no restriction. */
export function scopeIn(options: ScopeOptions): JsonObject | undefined {
  const { scopeProject, scopeSpace, scopeVirtualCluster, scopeCluster, scopeRole } = options;
  const lists: JsonObject = {
    projects: scopeProject.map((project) => ({ project })),
    spaces: scopeSpace.map(({ project, name }) => ({ project, space: name })),
    virtualClusters: scopeVirtualCluster.map(({ project, name }) => ({ project, virtualCluster: name })),
    clusters: scopeCluster.map((cluster) => ({ cluster })),
    roles: scopeRole.map((role) => ({ role })),
  };
  const given = Object.entries(lists).filter(([, list]) => Array.isArray(list) && list.length > 0);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** The command line of these options. */
export function scopeArguments(options: ScopeOptions): string[] {
  const { scopeProject, scopeSpace, scopeVirtualCluster, scopeCluster, scopeRole } = options;
  const flags = (flag: string, values: readonly string[]): string[] =>
    values.flatMap((value) => [flag, value]);
  const texts = (list: readonly Pair[]): string[] => list.map(({ project, name }) => `${project}/${name}`);
  return [
    ...flags('--scope-project', scopeProject),
    ...flags('--scope-space', texts(scopeSpace)),
    ...flags('--scope-virtual-cluster', texts(scopeVirtualCluster)),
    ...flags('--scope-cluster', scopeCluster),
    ...flags('--scope-role', scopeRole),
  ];
}

export function collected(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

function pairs(text: string, before: readonly Pair[]): Pair[] {
  const [project = '', name = '', ...more] = text.split('/');
  if (project === '' || name === '' || more.length > 0) throw new InvalidArgumentError('Use PROJECT/NAME.');
  return [...before, { project, name }];
}

// Parsers for the values of options.

export const DAY_SECONDS = 86_400;

/** A Go duration or whole days, in seconds: `90d`, `720h`, `30m`, `0`. */
export function secondsIn(text: string): number {
  if (text === '0') return 0;
  if (/^\d+$/u.test(text)) throw new InvalidArgumentError(`Add a unit: ${text}s is this number of seconds.`);
  const days = /^(\d{1,5})d$/u.exec(text)?.[1];
  const durationMs = days === undefined ? parseDuration(text) : Number(days) * DAY_SECONDS * 1000;
  if (durationMs === undefined) throw new InvalidArgumentError('Use a duration such as 90d, 720h or 30m.');
  const seconds = Math.floor(durationMs / 1000);
  if (seconds === 0) throw new InvalidArgumentError('It is shorter than a second; use 0 for none.');
  return seconds;
}

// Prints a new secret in one of the output formats.

export const KEY_FORMATS = ['key', 'kubeconfig', 'json', 'yaml'] as const;
export type KeyFormat = (typeof KEY_FORMATS)[number];

/** Text for standard output. `object` is the response with the secret. */
export function newKeyText(object: JsonObject, format: KeyFormat, connection: ApiConnection): string {
  switch (format) {
    case 'key':
      return `${keyOf(object)}\n`;
    case 'json':
    case 'yaml':
      return formatJson(object, format);
    case 'kubeconfig':
      return stringify(kubeconfigOf(object, connection));
  }
}

function keyOf(object: JsonObject): string {
  const key = textAt(object, 'spec', 'key');
  if (key === '') throw new TerminalError('the response of the server does not contain the secret');
  return key;
}

/** A kubeconfig with the server, its authority and the key. */
function kubeconfigOf(object: JsonObject, connection: ApiConnection): JsonObject {
  const { server, trust } = connection;
  const name = textAt(object, 'metadata', 'name');
  const pem = trust.kind === 'certificate' ? trust.certificate : trust.ca;
  const authority =
    pem === undefined ? {} : { 'certificate-authority-data': Buffer.from(pem).toString('base64') };
  const serverName = serverNameOf(connection);
  const verifiedName = serverName === undefined ? {} : { 'tls-server-name': serverName };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'endpoint-syncer', cluster: { server, ...authority, ...verifiedName } }],
    users: [{ name, user: { token: keyOf(object) } }],
    contexts: [{ name, context: { cluster: 'endpoint-syncer', user: name } }],
    'current-context': name,
  };
}

/** The name to verify in place of the host of the URL: as chosen, or one that a configured certificate has if it lacks the host. */
export function serverNameOf({ server, trust }: ApiConnection): string | undefined {
  if (trust.kind === 'authorities') return trust.serverName;
  const certificate = new X509Certificate(trust.certificate);
  const host = new URL(server).hostname.replaceAll(/[[\]]/gu, '');
  const match = isIP(host) > 0 ? certificate.checkIP(host) : certificate.checkHost(host);
  if (match !== undefined) return undefined;
  return /DNS:([a-z0-9][a-z0-9.-]*)/iu.exec(certificate.subjectAltName ?? '')?.[1];
}

// Prints secrets: a file that standard output is redirected to is restricted to its owner before the secret is written.

interface SecretOutput {
  readonly fd: number;
  write(text: string): unknown;
}

const GROUP_AND_OTHERS = 0o077;

export function printSecret(text: string, output: SecretOutput = process.stdout): void {
  restrictToOwner(output.fd);
  output.write(text);
}

/** Does nothing for a terminal or a pipe. */
function restrictToOwner(fd: number): void {
  const stat = fstatSync(fd);
  if (!stat.isFile() || (stat.mode & GROUP_AND_OTHERS) === 0) return;
  try {
    fchmodSync(fd, stat.mode & ~GROUP_AND_OTHERS);
  } catch (error) {
    const why = messageOf(error);
    process.stderr.write(
      `warning: other users can read the file with this secret, and its mode cannot be changed: ${why}\n`,
    );
  }
}
