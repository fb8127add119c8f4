/** `--vcluster` of a member of a fleet: its configuration, made on the host as the fleet makes it. */

import { TerminalError, type ConfigProblem } from '../../base/errors.ts';
import { valueAt } from '../../base/json.ts';
import type { Config, FleetConfig } from '../../config/config.ts';
import { loadConfig, type LoadOptions } from '../../config/load.ts';
import { problemOf } from '../../config/source-file.ts';
import { decideMember, isSelected, memberSelector, type MemberDecision } from '../../fleet/decide-member.ts';
import {
  accessSecret,
  FLEET,
  overlayConfigMap,
  serverOf,
  VCLUSTER_LABEL,
  valuesSecret,
  type VclusterObjects,
} from '../../fleet/vcluster.ts';
import { LEASES } from '../../kube/lease.ts';
import {
  CONFIG_MAPS,
  keyOf,
  SECRETS,
  type KubeObject,
  type NamespacedName,
  type Resource,
} from '../../kube/object.ts';
import { ignoreNotFound } from '../../kube/status-error.ts';
import type { ClusterClient } from '../../kube/types.ts';
import { leaseName } from '../../syncer/leadership.ts';
import { allowed, configFilesIn, vclusterWorkloads } from './hosted-objects.ts';
import { reaching, type LiveConfig } from './snapshot.ts';

const OTHERWISE = 'pass the configuration of this virtual cluster with --config';

/** Undefined: no fleet has synced this vCluster. */
export async function readMember(
  host: ClusterClient,
  vcluster: NamespacedName,
  input: LoadOptions,
): Promise<LiveConfig | undefined> {
  const lease = await read(host, LEASES, { ...vcluster, name: leaseName(vcluster.name) });
  const namespace = lease?.metadata.annotations?.[FLEET] ?? '';
  if (namespace === '') return undefined;
  const { fleet, defaults } = await fleetConfig(host, namespace, input);
  const objects = await readObjects(host, vcluster);
  const { flags, checks, sets = [] } = input;
  const { 'host.kubeconfig': kubeconfig = '', 'host.context': context = '' } = flags;
  const rules = {
    defaults,
    host: { kubeconfig, context, namespace },
    checks,
    commandLine: { env: {}, flags, sets },
  };
  // Copies of one that has left are there until a cleanup.
  const decision = decideMember(objects, { ...rules, fleet: selecting(fleet, vcluster) });
  if (decision.kind !== 'joined') throw new TerminalError(whyNot(decision, keyOf(vcluster)));
  const { config, warnings } = decision;
  const isMember = objects.workloads.some(isSelected(fleet));
  return {
    config,
    warnings: isMember ? warnings : [leftWarning(keyOf(vcluster), namespace, fleet), ...warnings],
    serverOf: serverOf(vcluster),
  };
}

/** The access of the fleet to the host is not here, and what it was started with besides its file is not known. */
async function fleetConfig(host: ClusterClient, namespace: string, { checks }: LoadOptions): Promise<Config> {
  const files = await allowed(configFilesIn(host, namespace), {
    rights: `list configmaps in the host namespace "${namespace}", which has the configuration of the fleet`,
    otherwise: OTHERWISE,
  });
  const [one, ...others] = files.filter(
    ({ value }) => valueAt(value, ['endpointSyncer', 'fleet', 'enabled']) === true,
  );
  if (one === undefined)
    throw new TerminalError(
      `a fleet in the host namespace "${namespace}" syncs this vCluster, but no ConfigMap there has a config.yaml with endpointSyncer.fleet.enabled: ${OTHERWISE}`,
    );
  if (others.length > 0)
    throw new TerminalError(
      `${[one, ...others].map(({ file }) => file).join(' and ')} both configure a fleet: delete the one that is not in use, or ${OTHERWISE}`,
    );
  const { config } = await loadConfig({
    env: {},
    flags: {},
    checks,
    acceptsFleet: true,
    given: { source: one },
  });
  return config;
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
  return allowed(
    reaching('host', () => ignoreNotFound(host.get(resource, name))),
    {
      rights: `get ${resource.plural} in the host namespace "${name.namespace}"`,
      otherwise: OTHERWISE,
    },
  );
}

/** Selects every vCluster of the namespace. */
function selecting(fleet: FleetConfig, { namespace }: NamespacedName): FleetConfig {
  const selector = { matchLabels: { app: 'vcluster' }, matchExpressions: [] };
  return { ...fleet, namespaces: { include: [namespace], exclude: [] }, selector };
}

function leftWarning(key: string, namespace: string, fleet: FleetConfig): ConfigProblem {
  const message = `no fleet syncs vCluster ${key} any more: its namespace or its labels are not those of the fleet in the host namespace "${namespace}" (${memberSelector(fleet)}); this is about the copies that it has left`;
  return problemOf('', { path: '', severity: 'warning', message });
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
