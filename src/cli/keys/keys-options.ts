/** Options that several `keys` commands have: the scope, and values such as durations. */

import { X509Certificate } from 'node:crypto';
import { fchmodSync, fstatSync } from 'node:fs';
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { writeYaml } from '../../base/yaml/write.ts';
import { formatJson } from '../output/listing.ts';
import { type JsonObject, textAt } from '../../base/json.ts';
import { parseDuration } from '../../config-file/units.ts';
import { TerminalError, messageOf } from '../../base/errors.ts';
import type { ApiConnection } from './keys-connection.ts';
import { tell } from '../output/terminal.ts';

/** Each option with the list in `spec.scope`, the member of its entries, and its help. */
const SCOPES = {
  scopeProject: [
    'projects',
    'project',
    '<project>',
    'project with all its spaces and virtual clusters; * selects all',
  ],
  scopeSpace: ['spaces', 'space', '<project/space>', 'space of a project'],
  scopeVirtualCluster: [
    'virtualClusters',
    'virtualCluster',
    '<project/name>',
    'virtual cluster of a project',
  ],
  scopeCluster: ['clusters', 'cluster', '<cluster>', 'connected cluster; * selects all'],
  scopeRole: ['roles', 'role', '<role>', 'role such as platformCLI'],
} as const;
const SCOPE_OPTIONS = Object.keys(SCOPES) as (keyof typeof SCOPES)[]; // its own keys

/** As typed: of spaces and virtual clusters `PROJECT/NAME`. */
export type ScopeOptions = Readonly<Record<keyof typeof SCOPES, readonly string[]>>;

export function addScopeOptions(command: Command, helpGroup: string): void {
  for (const option of SCOPE_OPTIONS) {
    const [, , value, help] = SCOPES[option];
    const parse = isPairOption(option) ? collectedPair : collected;
    const flags = `${scopeFlag(option)} ${value}`;
    command.addOption(new Option(flags, help).argParser(parse).default([]).helpGroup(helpGroup));
  }
}

/** `scopeVirtualCluster` → `--scope-virtual-cluster` */
function scopeFlag(option: keyof ScopeOptions): string {
  return `--${option.replaceAll(/[A-Z]/gu, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Undefined without flags: no restriction. */
export function scopeIn(options: ScopeOptions): JsonObject | undefined {
  const scope: JsonObject = {};
  for (const option of SCOPE_OPTIONS) {
    const [list, member] = SCOPES[option];
    const entries = options[option].map((text): JsonObject => {
      const [project = '', name = ''] = text.split('/');
      return isPairOption(option) ? { project, [member]: name } : { [member]: text };
    });
    if (entries.length > 0) scope[list] = entries;
  }
  return Object.keys(scope).length === 0 ? undefined : scope;
}

/** The command line of these options. */
export function scopeArguments(options: ScopeOptions): string[] {
  return SCOPE_OPTIONS.flatMap((option) => options[option].flatMap((text) => [scopeFlag(option), text]));
}

function isPairOption(option: keyof ScopeOptions): boolean {
  return SCOPES[option][2].includes('/');
}

export function collected(text: string, before: readonly string[]): string[] {
  return [...before, text];
}

function collectedPair(text: string, before: readonly string[]): string[] {
  if (/^[^/]+\/[^/]+$/u.test(text)) return collected(text, before);
  throw new InvalidArgumentError('Use PROJECT/NAME.');
}

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

export const KEY_FORMATS = ['key', 'kubeconfig', 'json', 'yaml'] as const;
export type KeyFormat = (typeof KEY_FORMATS)[number];

/** Text for standard output. `object` is the response with the secret. */
export function newKeyText(object: JsonObject, format: KeyFormat, connection: ApiConnection): string {
  switch (format) {
    case 'key':
      return `${credentialOf(object)}\n`;
    case 'json':
    case 'yaml':
      return formatJson(object, format);
    case 'kubeconfig':
      return writeYaml(keyKubeconfig(object, connection));
  }
}

function credentialOf(object: JsonObject): string {
  const key = textAt(object, 'spec', 'key');
  if (key === '') throw new TerminalError('the response of the server does not contain the secret');
  return key;
}

/** With the server, its authority and the key. */
function keyKubeconfig(object: JsonObject, connection: ApiConnection): JsonObject {
  const name = textAt(object, 'metadata', 'name');
  const user = { name, user: { token: credentialOf(object) } };
  const cluster = { server: connection.server, ...verificationOf(connection) };
  return kubeconfigOf(name, user, { name: 'endpoint-syncer', cluster });
}

interface Named extends JsonObject {
  name: string;
}

/** With one user, and one context. */
export function kubeconfigOf(context: string, user: Named, cluster: Named | undefined): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: cluster === undefined ? [] : [cluster],
    users: [user],
    contexts: [{ name: context, context: { ...(cluster && { cluster: cluster.name }), user: user.name } }],
    'current-context': context,
  };
}

/** How to verify the server: members of a cluster in a kubeconfig, and flags without their dashes. */
export function verificationOf(connection: ApiConnection): Record<string, string> {
  const { trust } = connection;
  const pem = trust.kind === 'certificate' ? trust.certificate : trust.ca;
  const serverName = serverNameOf(connection);
  return {
    ...(pem !== undefined && { 'certificate-authority-data': Buffer.from(pem).toString('base64') }),
    ...(serverName !== undefined && { 'tls-server-name': serverName }),
  };
}

/** The name to verify in place of the host of the URL: as chosen, or one that a configured certificate has if it lacks the host. */
function serverNameOf({ server, trust }: ApiConnection): string | undefined {
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

export const GROUP_AND_OTHERS = 0o077;

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
    tell(`warning: other users can read the file with this secret, and its mode cannot be changed: ${why}`);
  }
}
