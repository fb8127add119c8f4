/** Options that several `keys` commands have: the scope, and values such as durations. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { JsonObject } from '../../base/json.ts';
import { parseDuration } from '../../config/units.ts';

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

/** Throws for anything but an https URL. */
export function httpsUrl(text: string): string {
  if (text.startsWith('https://') && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be an https:// URL such as https://127.0.0.1:8443.');
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
