/** The connection of a command. With `--vcluster NAME`: the configuration in use, vCluster's values and the access to it, all read from its namespace on the host. */

import { gunzipSync } from 'node:zlib';
import { Option, type Command } from 'commander';
import { writeYaml } from '../../base/yaml/write.ts';
import { systemClock } from '../../base/clock.ts';
import { ConfigError, messageOf, TerminalError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, parseJson, textAt, valueAt } from '../../base/json.ts';
import { readDocument } from '../../config-file/document.ts';
import { overridesOfCommandLine } from '../config/command-line.ts';
import { loadConfig, type LoadOptions } from '../config/load.ts';
import { problemOf } from '../../config-file/source-file.ts';
import { valuesInForce } from '../../syncer/config/values-in-force.ts';
import {
  accessSecret,
  secretText,
  VALUES_KEY,
  valuesSecret,
  VCLUSTER_LABEL,
  overlayConfigMap,
  serverOf,
  type VclusterObjects,
  DEPLOYMENTS,
  STATEFUL_SETS,
} from '../../fleet/vcluster.ts';
import { loadClusterAccess } from '../../kube/credentials/kubeconfig.ts';
import {
  keyOf,
  objectKey,
  SECRETS,
  type KubeObject,
  type NamespacedName,
  CONFIG_MAPS,
  type Resource,
} from '../../kube/object.ts';
import { ignoreNotFound } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import {
  hostClient,
  type Connection,
  listAll,
  reaching,
  UnreachableError,
} from '../../syncer/rehearsal/connection.ts';
import { programParts } from '../installation.ts';
import { HELP_GROUP, loaderInput } from '../config-options.ts';
import { allowed, findConfiguration, fleetOf, textHashes } from './configuration-in-use.ts';
import { readFleetNote } from './reports.ts';
import { connect, type LiveConfig } from './snapshot.ts';
import { reportProblems, tell } from '../output/terminal.ts';
import type { Config, FleetConfig } from '../../syncer/config/config.ts';
import { decideMember, isSelected, memberSelector, type MemberDecision } from '../../fleet/decide-member.ts';
import { LEASES } from '../../kube/lease.ts';
import { leaseName } from '../../syncer/leadership.ts';
import { hasBookkeeping } from '../../syncer/translate/bookkeeping.ts';
import type { ConfigText } from '../../shared-config/layers.ts';

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
export async function withConnection<T>(
  command: Command,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const live = await commandConfig(command);
  reportProblems(live.warnings);
  if (live.source !== undefined) tell(`configuration in use: ${live.source}`);
  return whileConnected(live, work);
}

/** Connects for the time of `work`. */
export async function whileConnected<T>(
  live: Omit<LiveConfig, 'warnings'>,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  await using connection = await connect(live);
  try {
    return await work(connection);
  } catch (error) {
    throw withPortForward(error, connection);
  }
}

/** The URL in vCluster's Secret is that of its Pod or Service, which a laptop does not reach. */
function withPortForward(error: unknown, { config, clusters }: Connection): unknown {
  const { name, virtual, host } = config;
  if (!(error instanceof UnreachableError) || error.cluster !== 'virtual' || virtual.secret === '')
    return error instanceof UnreachableError
      ? withAccess(error, clusters.descriptions[error.cluster])
      : error;
  const access = (['kubeconfig', 'context'] as const)
    .map((flag) => (host[flag] === '' ? '' : `--${flag} ${host[flag]} `))
    .join('');
  const forward = `kubectl ${access}-n ${host.namespace} port-forward service/${name} 8443:443`;
  const advice = `where it is not reachable, run "${forward}" and pass --virtual-server https://localhost:8443`;
  const message = `${error.message}; the URL is ${clusters.servers.virtual}: ${advice}`;
  return new TerminalError(message, { cause: error.cause });
}

/** Names the file that has the URL. */
function withAccess(error: unknown, description: string): unknown {
  if (!(error instanceof UnreachableError)) return error;
  return new TerminalError(`${error.message}; the URL is that of ${description}`, { cause: error });
}

/** The configuration of a command; with `--vcluster`, the one in use, from the host. Throws a `ConfigError`. */
async function commandConfig(command: Command): Promise<LiveConfig> {
  const input = loaderInput(command);
  const name = vclusterOf(command);
  if (name === undefined) return loadConfig(input);
  if (input.file !== undefined)
    throw misused('--vcluster reads the configuration from the host: leave out --config');
  await using vcluster = connectHosted(command, name, input);
  return await vcluster.naming(configurationInUse(vcluster, input));
}

/** Rejects with a `TerminalError` unless the host has the configuration of which the Lease keeps the hash. */
export async function configurationInUse(vcluster: HostedVcluster, input: LoadOptions): Promise<LiveConfig> {
  const { host, namespace, name } = vcluster;
  const lease = await vcluster.lease();
  const hashes = await textHashes(host, lease);
  if (hashes.size === 0) return await vcluster.rejectUnknown(lease);
  const fleet = fleetOf(lease);
  const ofFleet = fleet === '' ? undefined : await findConfiguration(host, fleet, hashes);
  if (ofFleet !== undefined) return await readMember(host, { namespace, name, lease, fleet: ofFleet }, input);
  const own = await findConfiguration(host, namespace, hashes);
  if (own === undefined) return vcluster.rejectText(fleet);
  const loaded = await loadConfig(await sidecarInput(vcluster, own, input));
  return { ...loaded, isHosted: true, source: own.file };
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
  const virtual = hasSecret ? {} : { 'virtual.secret': accessSecret(vcluster).name };
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
  await using vcluster = connectHosted(command, name, loaderInput(command));
  return { name, namespace: vcluster.namespace, ...(await vcluster.naming(vcluster.values(given))) };
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

type HostClient = ClusterClient & AsyncDisposable;

interface HostConnection {
  readonly host: HostClient;
  /** Where the access is from. */
  readonly description: string;
}

function connectHost(
  command: Command,
  { flags }: LoadOptions,
): HostConnection & { own: string; given: string | undefined } {
  const access = loadClusterAccess(
    { kubeconfig: flags['host.kubeconfig'] ?? '', context: flags['host.context'] ?? '' },
    { clock: systemClock, setting: 'with --host-kubeconfig' },
  );
  const { namespace } = command.opts<{ namespace?: string }>();
  const given = flags['host.namespace'] ?? namespace;
  const { namespace: own, description } = access;
  return { host: hostClient(access, programParts()), description, own, given };
}

function connectHosted(command: Command, name: string, input: LoadOptions): HostedVcluster {
  const { own, given: namespace = own, ...host } = connectHost(command, input);
  if (namespace === '')
    throw misused(
      `--vcluster ${name}: the host context names no namespace: pass that of the vCluster with -n`,
    );
  return new HostedVcluster(host, name, namespace);
}

/** Every vCluster of the host, or with `-n` of one of its namespaces, in the order of their names; closes the connection afterwards. */
export async function eachVcluster<T>(
  command: Command,
  visit: (vcluster: HostedVcluster, workload: KubeObject) => Promise<T>,
): Promise<T[]> {
  const { given = '', host: client, description } = connectHost(command, loaderInput(command));
  const host = { host: client, description };
  await using _ = client;
  const where = given === '' ? 'all host namespaces' : `the host namespace "${given}"`;
  const workloads = await vclusterWorkloads(client, given, 'name one namespace with -n').catch(
    (error: unknown) => {
      throw withAccess(error, description);
    },
  );
  if (workloads.length === 0)
    throw new TerminalError(`no StatefulSet and no Deployment in ${where} has the label ${VCLUSTER_LABEL}`);
  const results: T[] = [];
  for (const workload of workloads.toSorted((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1))) {
    const { namespace = '', name } = workload.metadata;
    results.push(await visit(new HostedVcluster(host, name, namespace), workload));
  }
  return results;
}

export class HostedVcluster implements AsyncDisposable, NamespacedName {
  readonly name: string;
  readonly namespace: string;
  readonly host: HostClient;
  readonly #description: string;

  constructor({ host, description }: HostConnection, name: string, namespace: string) {
    this.host = host;
    this.#description = description;
    this.name = name;
    this.namespace = namespace;
  }

  /** Where the host does not respond, the error names what has its URL. */
  async naming<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw withAccess(error, this.#description);
    }
  }

  /** What it runs with. */
  async config(): Promise<ConfigText> {
    const key = valuesSecret(this);
    const secret = await this.#secret(key);
    if (secret === undefined)
      throw new TerminalError(
        `the host has no Secret "${keyOf(key)}", in which vCluster's chart keeps its values; name the namespace with -n`,
      );
    return { text: secretText(secret, VALUES_KEY), file: `Secret ${keyOf(key)}` };
  }

  /** `given`: the values of the release, in place of Helm's record. */
  async values(given?: string): Promise<VclusterValues> {
    if (given !== undefined) return { text: given, inForce: await this.config(), notes: [] };
    const releases = await this.#releases();
    const hasValues = releases.length === 0 || (await this.#secret(valuesSecret(this))) !== undefined;
    const inForce = hasValues ? await this.config() : undefined;
    const chosen = releaseInForce(releases, inForce);
    if (chosen !== undefined) return { ...chosen, inForce };
    return { text: inForce?.text ?? '', inForce: undefined, notes: [] };
  }

  /** From the newest revision to the one that is deployed. Those that failed may be in force, in part or as a whole. */
  async #releases(): Promise<KubeObject[]> {
    const labelSelector = `owner=helm,name=${this.name},status in (${UNFINISHED.join()},deployed)`;
    const { items } = await this.#allowed(
      reaching('host', () => this.host.list(SECRETS, { namespace: this.namespace, labelSelector })),
    );
    // A tenant chooses the labels of its Secrets, but not that a syncer has copied them here.
    const releases = items
      .filter((secret) => !hasBookkeeping(secret))
      .toSorted((a, b) => revisionOf(b) - revisionOf(a));
    const deployed = releases.findIndex((secret) => statusOf(secret) === 'deployed');
    return deployed < 0 ? releases : releases.slice(0, deployed + 1);
  }

  /** The Lease of the daemon that syncs it, or has synced it. */
  lease(): Promise<KubeObject | undefined> {
    return read(this.host, LEASES, { namespace: this.namespace, name: leaseName(this.name) });
  }

  /** The object that has the configuration of the daemon beside it; undefined if there is no such daemon. */
  async sidecar(): Promise<string | undefined> {
    const lease = await this.lease();
    const hashes = await textHashes(this.host, lease);
    if (fleetOf(lease) !== '' || hashes.size === 0) return undefined;
    const found = await findConfiguration(this.host, this.namespace, hashes);
    return found?.file ?? 'the configuration in use';
  }

  /** No daemon has published which configuration it uses. */
  async rejectUnknown(lease: KubeObject | undefined): Promise<never> {
    const key = keyOf({ namespace: this.namespace, name: leaseName(this.name) });
    if (lease !== undefined)
      throw new TerminalError(
        `Lease "${key}" does not say which configuration is in use: the daemon is of an earlier version, or was started without a file; pass its configuration with --config`,
      );
    // The chart of vCluster creates the values, and vCluster the access after its start.
    const keys = [valuesSecret(this), accessSecret(this)];
    const secrets = await Promise.all(keys.map((one) => this.#secret(one)));
    const hasVcluster = secrets.some((secret) => secret !== undefined);
    const what = hasVcluster
      ? `vCluster "${this.name}" is there, and no daemon with the right to write this Lease has synced it: install this program beside it, or pass the configuration with --config. A fleet that selects it waits until it is awake, and says what is wrong with it in an Event on its StatefulSet or Deployment`
      : 'name the namespace of the vCluster with -n, or pass the configuration with --config';
    throw new TerminalError(`the host has no Lease "${key}": ${what}`);
  }

  /** `fleet`: its namespace, '' for none. */
  rejectText(fleet: string): never {
    const where = [...new Set([fleet, this.namespace])].filter((namespace) => namespace !== '');
    const namespaces = where.map((namespace) => `"${namespace}"`).join(' and ');
    throw new TerminalError(
      `no ConfigMap and no Secret of the host namespace ${namespaces} is the configuration in use, of which Lease "${keyOf({ namespace: this.namespace, name: leaseName(this.name) })}" has the hash: it is kept elsewhere, or was changed and needs a restart; pass it with --config`,
    );
  }

  #secret(key: NamespacedName): Promise<KubeObject | undefined> {
    return this.#allowed(reaching('host', () => ignoreNotFound(this.host.get(SECRETS, key))));
  }

  /** The daemon needs no such rights, so `rbac` does not print them. */
  #allowed<T>(request: Promise<T>): Promise<T> {
    const rights = `list configmaps and secrets in the host namespace "${this.namespace}"`;
    return allowed(request, rights, 'pass --config');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.host[Symbol.asyncDispose]();
  }
}

// The values of a release of Helm.

export interface VclusterValues {
  /** What the user gave to Helm, as `helm get values` prints it. */
  readonly text: string;
  /** What vCluster runs with; undefined: it is `text`, or not known. */
  readonly inForce: ConfigText | undefined;
  /** Which revision of the release this is, if it is not the one that a reader expects. */
  readonly notes: readonly string[];
}

const UNFINISHED = ['failed', 'pending-install', 'pending-upgrade', 'pending-rollback'];

/** The first of the releases whose values are in force, else the first. */
function releaseInForce(
  releases: readonly KubeObject[],
  inForce: ConfigText | undefined,
): Pick<VclusterValues, 'text' | 'notes'> | undefined {
  const [newest] = releases;
  if (newest === undefined) return undefined;
  const running = inForce === undefined ? undefined : readDocument(inForce.file, inForce.text).value;
  const isInForce = (release: KubeObject): boolean =>
    running !== undefined && valuesInForce(releasedValues(release), running).differences.length === 0;
  const chosen = releases.find(isInForce) ?? newest;
  const named = `revision ${revisionOf(chosen)} of the release`;
  const last = `revision ${revisionOf(newest)}, which is ${statusOf(newest)}`;
  const note =
    chosen !== newest
      ? `these are the values of ${named}, with which vCluster runs; "helm get values" prints those of ${last}`
      : `these are the values of ${named}, which is ${statusOf(newest)}`;
  const isExpected = chosen === newest && statusOf(newest) === 'deployed';
  return { text: writeYaml(releasedValues(chosen)), notes: isExpected ? [] : [note] };
}

function revisionOf({ metadata: { labels } }: KubeObject): number {
  return Number(labels?.['version'] ?? 0);
}

function statusOf({ metadata: { labels } }: KubeObject): string {
  return labels?.['status'] ?? '';
}

/** A Secret of 1 MiB may be as much as 1 GiB without its compression. */
const RELEASE_BYTES_MAX = 32 * 1024 * 1024;

function releasedValues(release: KubeObject): JsonObject {
  try {
    const packed = Buffer.from(secretText(release, 'release'), 'base64');
    const record = parseJson(gunzipSync(packed, { maxOutputLength: RELEASE_BYTES_MAX }).toString());
    const values = valueAt(record, ['config']);
    return isJsonObject(values) ? values : {};
  } catch (error) {
    const message = `Secret "${objectKey(release)}" has no release of Helm: ${messageOf(error)}`;
    throw new TerminalError(message, { cause: error });
  }
}

// `--vcluster` of a member of a fleet: its configuration, made on the host as the fleet makes it.

const OTHERWISE = 'pass the configuration of this virtual cluster with --config';

interface HostedMember extends NamespacedName {
  readonly lease: KubeObject | undefined;
  /** The configuration of its fleet. */
  readonly fleet: ConfigText;
}

async function readMember(
  host: ClusterClient,
  { lease, fleet: source, ...vcluster }: HostedMember,
  input: LoadOptions,
): Promise<LiveConfig> {
  const namespace = fleetOf(lease);
  const { fleet, defaults } = await fleetConfig(source);
  const objects = await readObjects(host, vcluster);
  const { flags, sets = [] } = input;
  const { 'host.kubeconfig': kubeconfig = '', 'host.context': context = '' } = flags;
  const decision = decideMember(objects, {
    defaults,
    host: { kubeconfig, context, namespace },
    commandLine: overridesOfCommandLine({ env: {}, flags, sets }),
    // Copies of one that has left are there until a cleanup.
    fleet: selecting(fleet, vcluster),
  });
  const key = keyOf(vcluster);
  if (decision.kind !== 'joined') throw new TerminalError(whyNot(decision, key));
  const { config, warnings } = decision;
  const isMember = objects.workloads.some(isSelected(fleet));
  const state = isMember ? await readFleetNote(lease, host, systemClock.now()) : undefined;
  const message = isMember
    ? state && `vCluster ${key} is in the state ${state}`
    : leftNote(key, namespace, fleet);
  const own = message === undefined ? [] : [problemOf('', { path: '', severity: 'warning', message })];
  return {
    config,
    warnings: [...own, ...warnings],
    serverOf: serverOf(vcluster),
    isHosted: true,
    source: `${source.file} of the fleet and Secret ${keyOf(valuesSecret(vcluster))}`,
  };
}

/** The access of the fleet to the host is not here, and what it was started with besides its file is not known. */
async function fleetConfig(source: ConfigText): Promise<Config> {
  const { config } = await loadConfig({ env: {}, flags: {}, acceptsFleet: true, given: { source } });
  if (config.fleet.enabled) return config;
  throw new TerminalError(`${source.file} is not the configuration of a fleet: ${OTHERWISE}`);
}

async function readObjects(host: ClusterClient, vcluster: NamespacedName): Promise<VclusterObjects> {
  const [workloads, access, values, overlay] = await Promise.all([
    vclusterWorkloads(host, vcluster.namespace, OTHERWISE),
    read(host, SECRETS, accessSecret(vcluster)),
    read(host, SECRETS, valuesSecret(vcluster)),
    read(host, CONFIG_MAPS, overlayConfigMap(vcluster)),
  ]);
  const own = workloads.filter(({ metadata }) => metadata.name === vcluster.name);
  return { ...vcluster, workloads: own, access, values, overlay };
}

function read(
  host: ClusterClient,
  resource: Resource,
  name: NamespacedName,
): Promise<KubeObject | undefined> {
  const rights = `get ${resource.plural} in the host namespace "${name.namespace}"`;
  const request = reaching('host', () => ignoreNotFound(host.get(resource, name)));
  return allowed(request, rights, OTHERWISE);
}

/** Selects every vCluster of the namespace. */
function selecting(fleet: FleetConfig, { namespace }: NamespacedName): FleetConfig {
  const selector = { matchLabels: { app: 'vcluster' }, matchExpressions: [] };
  return { ...fleet, namespaces: { include: [namespace], exclude: [] }, selector };
}

function leftNote(key: string, namespace: string, fleet: FleetConfig): string {
  return `no fleet syncs vCluster ${key} any more: its namespace or its labels are not those of the fleet in the host namespace "${namespace}" (${memberSelector(fleet)}); this is about the copies that it has left`;
}

function whyNot(decision: Exclude<MemberDecision, { kind: 'joined' }>, key: string): string {
  switch (decision.kind) {
    case 'left':
    case 'removed':
    case 'deleted':
      return `the host has no StatefulSet and no Deployment "${key}" with the label ${VCLUSTER_LABEL}, and only what a fleet has left of it: name the namespace of the vCluster with -n`;
    case 'asleep':
      return `vCluster ${key} is asleep, ${decision.reason}: wake it, because its API server has to respond`;
    case 'waiting':
      return `vCluster ${key} is not started yet: ${decision.reason}`;
    case 'invalid':
      return `the fleet cannot use what the host has of vCluster ${key}, and keeps the configuration before if it has one: ${decision.reason}`;
    case 'conflicting':
      return `the fleet cannot sync vCluster ${key}: ${decision.reason}`;
  }
}

// What commands read of vClusters on the host, and the rights that this needs.

/** The StatefulSets and Deployments of vClusters; '' stands for all namespaces. `otherwise`: what to do without the rights. */
async function vclusterWorkloads(
  host: ClusterClient,
  namespace: string,
  otherwise: string,
): Promise<KubeObject[]> {
  const where = namespace === '' ? 'all host namespaces' : `the host namespace "${namespace}"`;
  const lists = [STATEFUL_SETS, DEPLOYMENTS].map((resource) => {
    const request = listAll(host, resource, [namespace], VCLUSTER_LABEL);
    return allowed(request, `list ${resource.plural} in ${where}`, otherwise);
  });
  return (await Promise.all(lists)).flat();
}
