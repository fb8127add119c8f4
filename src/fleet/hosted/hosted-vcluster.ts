/** A vCluster as a command with `--vcluster` reads it from the host: its values, the configuration in use, and itself as the member of a fleet. */

import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { readDocument } from '../../config-file/document.ts';
import { withoutEmptyKeys } from '../../config-file/merge.ts';
import type { Override } from '../../config-file/overrides.ts';
import { problemOf } from '../../config-file/source-file.ts';
import { loadClusterAccess } from '../../kube/credentials/kubeconfig.ts';
import { LEASES } from '../../kube/lease.ts';
import {
  CONFIG_MAPS,
  keyOf,
  objectKey,
  SECRETS,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { ignoreNotFound, isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import type { ConfigText } from '../../shared-config/layers.ts';
import type { Config, FleetConfig } from '../../syncer/config/config.ts';
import { syncedByVcluster } from '../../syncer/config/warnings.ts';
import { leaseName } from '../../syncer/leadership.ts';
import { hostClient, listAll, reaching, withAccess } from '../../syncer/rehearsal/connection.ts';
import {
  decideMember,
  isSelected,
  MEMBER_LABEL,
  memberSelector,
  type MemberDecision,
} from '../decide-member.ts';
import {
  accessSecret,
  DEPLOYMENTS,
  overlayConfigMap,
  secretText,
  serverOf,
  STATEFUL_SETS,
  VALUES_KEY,
  valuesSecret,
  VCLUSTER_LABEL,
  type VclusterObjects,
} from '../vcluster.ts';
import { allowed, findConfiguration, fleetOf, textHashes } from './configuration-in-use.ts';
import { readFleetNote } from './daemon-state.ts';
import { newestReleases, releaseInForce, releaseSelector, type VclusterValues } from './release-values.ts';

const OTHERWISE = 'pass the configuration of this virtual cluster with --config';

export interface HostConnection {
  readonly host: ClusterClient;
  /** Where the access is from. */
  readonly description: string;
}

/** `own`: the namespace of the context, '' for none. */
export function connectHost(
  context: Pick<Config['host'], 'kubeconfig' | 'context'>,
  parts: Parameters<typeof hostClient>[1],
) {
  const options = { clock: parts.clock, setting: 'with --host-kubeconfig' };
  const access = loadClusterAccess(context, options);
  return { host: hostClient(access, parts), description: access.description, own: access.namespace };
}

interface ConfigurationInUse {
  readonly source: ConfigText;
  /** It is that of the fleet of which the vCluster is, or was, a member. */
  readonly isOfFleet: boolean;
}

interface MemberAccess {
  /** Of this user to the host: that of the fleet is not here. */
  readonly host: Pick<Config['host'], 'kubeconfig' | 'context'>;
  readonly commandLine: readonly Override[];
}

export class HostedVcluster implements NamespacedName {
  readonly name: string;
  readonly namespace: string;
  readonly #host: ClusterClient;
  readonly #description: string;
  #leaseRead: Promise<KubeObject | undefined> | undefined;

  constructor({ host, description }: HostConnection, { namespace, name }: NamespacedName) {
    this.#host = host;
    this.#description = description;
    this.name = name;
    this.namespace = namespace;
  }

  /** The name of the Secret with the access to it. */
  get accessSecret(): string {
    return accessSecret(this).name;
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
    const labelSelector = releaseSelector(this.name);
    const { items } = await this.#allowed(
      reaching('host', () => this.#host.list(SECRETS, { namespace: this.namespace, labelSelector })),
    );
    const releases = newestReleases(items);
    const hasValues = releases.length === 0 || (await this.#secret(valuesSecret(this))) !== undefined;
    const inForce = hasValues ? await this.config() : undefined;
    const chosen = releaseInForce(releases, inForce);
    if (chosen !== undefined) return { ...chosen, inForce };
    return { text: inForce?.text ?? '', inForce: undefined, notes: [] };
  }

  /** Rejects with a `TerminalError` unless the host has the configuration of which the Lease keeps the hash. */
  async configurationInUse(): Promise<ConfigurationInUse> {
    const lease = await this.#lease();
    const hashes = await textHashes(this.#host, lease);
    if (hashes.size === 0) return this.#rejectUnknown(lease);
    const fleet = fleetOf(lease);
    const ofFleet = fleet === '' ? undefined : await findConfiguration(this.#host, fleet, hashes);
    if (ofFleet !== undefined) return { source: ofFleet, isOfFleet: true };
    const own = await findConfiguration(this.#host, this.namespace, hashes);
    return own === undefined ? this.#rejectText(fleet) : { source: own, isOfFleet: false };
  }

  /** The object that has the configuration of the daemon beside it; undefined if there is no such daemon. */
  async sidecar(): Promise<string | undefined> {
    const lease = await this.#lease();
    const hashes = await textHashes(this.#host, lease);
    if (fleetOf(lease) !== '' || hashes.size === 0) return undefined;
    const found = await findConfiguration(this.#host, this.namespace, hashes);
    return found?.file ?? 'the configuration in use';
  }

  /** Its configuration, as its fleet makes it of the one in use. Rejects with a `TerminalError` if the fleet does not sync it. */
  async member({ fleet, defaults }: Config, { host, commandLine }: MemberAccess) {
    const lease = await this.#lease();
    const namespace = fleetOf(lease);
    const objects = await this.#objects();
    const decision = decideMember(objects, {
      defaults,
      host: { ...host, namespace },
      commandLine,
      // Copies of one that has left are there until a cleanup.
      fleet: selecting(fleet, this),
    });
    const key = keyOf(this);
    if (decision.kind !== 'joined') throw new TerminalError(whyNot(decision, key));
    const isMember = objects.workloads.some(isSelected(fleet));
    const state = isMember ? await readFleetNote(lease, this.#host, systemClock.now()) : undefined;
    const message = isMember
      ? state && `vCluster ${key} is in the state ${state}`
      : leftNote(key, namespace, fleet);
    const own = message === undefined ? [] : [problemOf('', { path: '', severity: 'warning', message })];
    return {
      config: decision.config,
      warnings: [...own, ...decision.warnings],
      serverOf: serverOf(this),
      values: `Secret ${keyOf(valuesSecret(this))}`,
    };
  }

  async #objects(): Promise<VclusterObjects> {
    const { name, namespace } = this;
    const [workloads, access, values, overlay] = await Promise.all([
      vclusterWorkloads(this.#host, namespace, OTHERWISE),
      this.#read(SECRETS, accessSecret(this)),
      this.#read(SECRETS, valuesSecret(this)),
      this.#read(CONFIG_MAPS, overlayConfigMap(this)),
    ]);
    const own = workloads.filter(({ metadata }) => metadata.name === name);
    return { namespace, name, workloads: own, access, values, overlay };
  }

  /** Of the daemon that syncs it, or has synced it. Read once. */
  #lease(): Promise<KubeObject | undefined> {
    this.#leaseRead ??= this.#read(LEASES, this.#leaseKey());
    return this.#leaseRead;
  }

  #leaseKey(): NamespacedName {
    return { namespace: this.namespace, name: leaseName(this.name) };
  }

  #read(resource: Resource, name: NamespacedName): Promise<KubeObject | undefined> {
    const rights = `get ${resource.plural} in the host namespace "${name.namespace}"`;
    const request = reaching('host', () => ignoreNotFound(this.#host.get(resource, name)));
    return allowed(request, rights, OTHERWISE);
  }

  /** No daemon has published which configuration it uses. */
  async #rejectUnknown(lease: KubeObject | undefined): Promise<never> {
    const key = keyOf(this.#leaseKey());
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
  #rejectText(fleet: string): never {
    const where = [...new Set([fleet, this.namespace])].filter((namespace) => namespace !== '');
    const namespaces = where.map((namespace) => `"${namespace}"`).join(' and ');
    throw new TerminalError(
      `no ConfigMap and no Secret of the host namespace ${namespaces} is the configuration in use, of which Lease "${keyOf(this.#leaseKey())}" has the hash: it is kept elsewhere, or was changed and needs a restart; pass it with --config`,
    );
  }

  #secret(key: NamespacedName): Promise<KubeObject | undefined> {
    return this.#allowed(reaching('host', () => ignoreNotFound(this.#host.get(SECRETS, key))));
  }

  /** The daemon needs no such rights, so `rbac` does not print them. */
  #allowed<T>(request: Promise<T>): Promise<T> {
    const rights = `list configmaps and secrets in the host namespace "${this.namespace}"`;
    return allowed(request, rights, 'pass --config');
  }
}

/** vCluster's values with the label by which a fleet selects it. */
export const MEMBER_VALUES = { controlPlane: { statefulSet: { labels: { [MEMBER_LABEL]: 'true' } } } };

/** Those of the host, with '' of all its namespaces, in the order of their names. Rejects with a `TerminalError` if there is none. */
export async function hostedVclusters(
  connection: HostConnection,
  namespace: string,
): Promise<readonly { readonly vcluster: HostedVcluster; readonly isLabelled: boolean }[]> {
  const { host, description } = connection;
  const where = namespace === '' ? 'all host namespaces' : `the host namespace "${namespace}"`;
  const workloads = await vclusterWorkloads(host, namespace, 'name one namespace with -n').catch(
    (error: unknown) => {
      throw withAccess(error, description);
    },
  );
  if (workloads.length === 0)
    throw new TerminalError(`no StatefulSet and no Deployment in ${where} has the label ${VCLUSTER_LABEL}`);
  return workloads
    .toSorted((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1))
    .map((workload) => {
      const { namespace: own = '', name, labels } = workload.metadata;
      const vcluster = new HostedVcluster(connection, { namespace: own, name });
      return { vcluster, isLabelled: labels?.[MEMBER_LABEL] === 'true' };
    });
}

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

interface KeysOfVcluster {
  readonly keys: readonly string[];
  /** What says so. */
  readonly file: string;
}

/** The kinds that vCluster syncs, by the values that it runs with, or where they cannot be read, by those of the configuration. */
export async function keysOfVcluster(
  { name, host: { namespace }, sync, vclusterConfig }: Config,
  host: ClusterClient,
): Promise<KeysOfVcluster> {
  const key = valuesSecret({ namespace, name });
  const secret = await reaching('host', () =>
    host.get(SECRETS, key).catch((error: unknown) => {
      if (isForbidden(error) || isNotFound(error)) return undefined;
      throw error;
    }),
  );
  if (secret === undefined) return { keys: sync.syncedByVcluster ?? [], file: vclusterConfig };
  const file = `Secret "${keyOf(key)}"`;
  const { value } = readDocument(file, secretText(secret, VALUES_KEY));
  return { keys: syncedByVcluster(withoutEmptyKeys(value)), file };
}
