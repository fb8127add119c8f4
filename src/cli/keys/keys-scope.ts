/** The options of a scope. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { JsonObject } from '../../base/json.ts';

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
