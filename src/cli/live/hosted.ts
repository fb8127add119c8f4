/** The connection of a command. With `--vcluster NAME`: the configuration in use, vCluster's values and the access to it, all read from its namespace on the host. */

import { Option, type Command } from 'commander';
import { ConfigError, TerminalError, type ConfigProblem } from '../../base/errors.ts';
import { textAt } from '../../base/json.ts';
import { readDocument } from '../../config-file/document.ts';
import { problemOf } from '../../config-file/source-file.ts';
import { connectHost, HostedVcluster, hostedVclusters } from '../../fleet/hosted/hosted-vcluster.ts';
import type { ConfigText } from '../../shared-config/layers.ts';
import type { Config } from '../../syncer/config/config.ts';
import { type LiveSync, withLiveSync } from '../../syncer/rehearsal/live-sync.ts';
import { HELP_GROUP, loaderInput } from '../config-options.ts';
import { overridesOfCommandLine } from '../config/command-line.ts';
import { loadConfig, type LoadOptions } from '../config/load.ts';
import { programParts } from '../installation.ts';
import { reportProblems, tell } from '../output/terminal.ts';
import { commandParts } from './command-parts.ts';

/** `-n` is the host namespace with `--vcluster`, as `--host-namespace` is without it. It selects virtual objects only where `isFilter` is true, and the command reads
 * {@link virtualNamespace}; elsewhere it is an error then, because a command that ignored it would show, or delete, everything. */
export function addVclusterOption(command: Command, isFilter = false): void {
  const help =
    'read configuration, values and access of this virtual cluster from the host, instead of --config';
  command.addOption(new Option('--vcluster <name>', help).helpGroup(HELP_GROUP));
  const ofHost = 'with --vcluster: its namespace on the host';
  const rule = isFilter
    ? `${ofHost}, unless --host-namespace is given; otherwise: only this virtual namespace`
    : ofHost;
  const namespace = new Option('-n, --namespace <name>', rule);
  command.addOption(isFilter ? namespace : namespace.helpGroup(HELP_GROUP));
  if (!isFilter) command.hook('preAction', () => rejectVirtualNamespace(command));
}

function rejectVirtualNamespace(command: Command): void {
  const namespace = virtualNamespace(command);
  if (namespace === undefined) return;
  const why =
    command.getOptionValue('vcluster') === undefined ? 'there is none' : '--host-namespace names it';
  const message = `error: -n ${namespace}: it is the namespace of a --vcluster on the host, and ${why}; ${command.name()} does not select virtual namespaces, so leave it out`;
  command.error(message, { exitCode: 2 });
}

/** Connects for the time of `work`, and reports the warnings of the configuration. Rejects with a `ConfigError` for an invalid one. */
export async function withConnection<T>(command: Command, work: (sync: LiveSync) => Promise<T>): Promise<T> {
  const { config, warnings, source, ...options } = await commandConfig(command);
  reportProblems(warnings);
  if (source !== undefined) tell(`configuration in use: ${source}`);
  return withLiveSync(config, { ...commandParts(), ...options }, work);
}

/** What a command on both clusters runs with. */
export interface LiveConfig {
  readonly config: Config;
  readonly warnings: readonly ConfigProblem[];
  /** The URL to use instead of the one in the Secret of the virtual cluster. */
  readonly serverOf?: (ofSecret: string) => string;
  /** The configuration was read from the host: nothing outside of the namespaces that it maps is written or deleted. */
  readonly isHosted?: boolean;
  /** Which objects of the host it was read from. */
  readonly source?: string;
}

/** The configuration of a command; with `--vcluster`, the one in use, from the host. Throws a `ConfigError`. */
async function commandConfig(command: Command): Promise<LiveConfig> {
  const input = loaderInput(command);
  const name = vclusterOf(command);
  if (name === undefined) {
    const { config, warnings } = await loadConfig(input);
    return { config, warnings };
  }
  if (input.file !== undefined)
    throw misused('--vcluster reads the configuration from the host: leave out --config');
  return withVcluster(command, name, (vcluster) => configurationInUse(vcluster, input));
}

/** Rejects with a `TerminalError` unless the host has it. */
export async function configurationInUse(vcluster: HostedVcluster, input: LoadOptions): Promise<LiveConfig> {
  const { source, isOfFleet } = await vcluster.configurationInUse();
  if (isOfFleet) return await memberConfig(vcluster, source, input);
  const { config, warnings } = await loadConfig(await sidecarInput(vcluster, source, input));
  return { config, warnings, isHosted: true, source: source.file };
}

async function memberConfig(
  vcluster: HostedVcluster,
  source: ConfigText,
  { flags, sets = [] }: LoadOptions,
): Promise<LiveConfig> {
  // The access of the fleet to the host is not here, and what it was started with besides its file is not known.
  const { config: fleet } = await loadConfig({ env: {}, flags: {}, acceptsFleet: true, given: { source } });
  if (!fleet.fleet.enabled)
    throw new TerminalError(
      `${source.file} is not the configuration of a fleet: pass the configuration of this virtual cluster with --config`,
    );
  const { 'host.kubeconfig': kubeconfig = '', 'host.context': context = '' } = flags;
  const { values, ...member } = await vcluster.member(fleet, {
    host: { kubeconfig, context },
    commandLine: overridesOfCommandLine({ env: {}, flags, sets }),
  });
  return { ...member, isHosted: true, source: `${source.file} of the fleet and ${values}` };
}

/** The input of the loader for the configuration of a daemon beside one vCluster. */
async function sidecarInput(
  vcluster: HostedVcluster,
  source: ConfigText,
  input: LoadOptions,
): Promise<LoadOptions> {
  const { name, namespace } = vcluster;
  const syncer = readDocument(source.file, source.text).value['endpointSyncer'] ?? null;
  const hasSecret = textAt(syncer, 'virtual', 'secret') !== '';
  const podFile = textAt(syncer, 'virtual', 'kubeconfig');
  if (podFile !== '' && !['virtual.kubeconfig', 'virtual.secret'].some((flag) => flag in input.flags))
    throw misused(
      `${source.file} reaches the virtual cluster with a file of the Pod, ${podFile}: pass that file with --virtual-kubeconfig, or the Secret that holds it with --virtual-secret`,
    );
  const hasValues = textAt(syncer, 'vclusterConfig') !== '';
  // The service account of the Pod is not here, and a context would be one of this user's kubeconfig.
  const access = { 'host.kubeconfig': '', 'host.context': '', 'host.namespace': namespace };
  const virtual = hasSecret ? {} : { 'virtual.secret': vcluster.accessSecret };
  return {
    ...input,
    env: {},
    flags: { ...access, ...virtual, ...input.flags, name },
    given: { source, ...(hasValues && { vcluster: await vcluster.config() }) },
  };
}

/** The name, the namespace and the values of a vCluster on the host; undefined without `--vcluster`. `given`: the values of its release, from a file. */
export async function hostedValues(command: Command, given: string | undefined) {
  const name = vclusterOf(command);
  if (name === undefined) return undefined;
  return withVcluster(command, name, async (vcluster) => ({
    name,
    namespace: vcluster.namespace,
    ...(await vcluster.values(given)),
  }));
}

/** Every vCluster of the host, or with `-n` of one of its namespaces, in the order of their names; closes the connection afterwards. */
export async function eachVcluster<T>(
  command: Command,
  visit: (vcluster: HostedVcluster, isLabelled: boolean) => Promise<T>,
): Promise<T[]> {
  const { given = '', ...connection } = connectionOf(command, loaderInput(command));
  await using _ = connection.host;
  const results: T[] = [];
  for (const { vcluster, isLabelled } of await hostedVclusters(connection, given))
    results.push(await visit(vcluster, isLabelled));
  return results;
}

async function withVcluster<T>(
  command: Command,
  name: string,
  work: (vcluster: HostedVcluster) => Promise<T>,
): Promise<T> {
  const { own, given: namespace = own, ...connection } = connectionOf(command, loaderInput(command));
  if (namespace === '')
    throw misused(
      `--vcluster ${name}: the host context names no namespace: pass that of the vCluster with -n`,
    );
  await using _ = connection.host;
  const vcluster = new HostedVcluster(connection, { namespace, name });
  return await vcluster.naming(work(vcluster));
}

function connectionOf(command: Command, { flags }: LoadOptions) {
  const access = { kubeconfig: flags['host.kubeconfig'] ?? '', context: flags['host.context'] ?? '' };
  const { namespace } = command.opts<{ namespace?: string }>();
  return { ...connectHost(access, programParts()), given: flags['host.namespace'] ?? namespace };
}

/** What `-n` names unless it is the namespace of a vCluster on the host: see {@link addVclusterOption}. */
export function virtualNamespace(command: Command): string | undefined {
  const { vcluster, fleet, hostNamespace, namespace } =
    command.opts<Partial<Record<string, string | true>>>();
  const isOfHost = fleet === true || (vcluster !== undefined && hostNamespace === undefined);
  return isOfHost || typeof namespace !== 'string' ? undefined : namespace;
}

function vclusterOf(command: Command): string | undefined {
  const { vcluster } = command.opts<{ vcluster?: string }>();
  return vcluster;
}

function misused(message: string): ConfigError {
  return new ConfigError([problemOf('', message)]);
}
