/** Whether a vCluster is a member of the fleet, and what becomes of it, from what the host has of it. Pure. */

import { textAt, valueAt } from '../base/json.ts';
import type { ConfigProblem } from '../base/errors.ts';
import type { Config, FleetConfig } from '../syncer/config/config.ts';
import { isFleetNamespace } from '../syncer/config/fleet-rules.ts';
import { parseLabelSelector, printLabelSelector, type LabelPredicate } from '../kube/label-selector.ts';
import {
  asJson,
  keyOf,
  objectKey,
  type KubeObject,
  type NamespacedName,
  type ObjectKey,
} from '../kube/object.ts';
import { hasBookkeeping } from '../syncer/translate/bookkeeping.ts';
import { memberConfig, type MemberConfig, type MemberRules, type MemberTexts } from './member-config.ts';
import {
  ACCESS_KEY,
  accessSecret,
  overlayConfigMap,
  PAUSED,
  secretText,
  TEXT_CHARS_MAX,
  VALUES_KEY,
  valuesSecret,
  type VclusterObjects,
} from './vcluster.ts';

export type MemberDecision =
  /** It is not selected: it is not synced, and its copies stay. */
  | { readonly kind: 'left' }
  /** Its workload does not exist, but its values do: its copies stay, because it may be created again. */
  | { readonly kind: 'removed' }
  /** It is gone with its values: its copies go too. */
  | { readonly kind: 'deleted' }
  /** Its API server does not run, on purpose. */
  | { readonly kind: 'asleep'; readonly reason: string }
  /** vCluster has not created all of its objects yet. */
  | { readonly kind: 'waiting'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'conflicting'; readonly reason: string }
  | { readonly kind: 'joined'; readonly config: Config; readonly warnings: readonly ConfigProblem[] };

/** It is a member, in whatever state. */
export type Membership = Exclude<MemberDecision, { kind: 'left' | 'removed' | 'deleted' }>;

/** What its Secrets and its ConfigMap decide. */
export type TextDecision = Extract<MemberDecision, { kind: 'waiting' | 'invalid' | 'joined' }>;

export interface FleetRules extends MemberRules {
  readonly fleet: FleetConfig;
}

/** With the value `true`, a vCluster is a member, unless the fleet has a selector of its own. */
export const MEMBER_LABEL = 'endpoint-syncer/enabled';
const DEFAULT_SELECTOR = `${MEMBER_LABEL}=true`;

/** The selector of the workloads as text; that of {@link FleetConfig} may be empty. */
export function memberSelector({ selector }: FleetConfig): string {
  return printLabelSelector(selector) || DEFAULT_SELECTOR;
}

export function isSelected(fleet: FleetConfig): (workload: KubeObject) => boolean {
  const hasLabels: LabelPredicate = parseLabelSelector(memberSelector(fleet));
  return ({ metadata: { namespace = '', labels = {} } }) =>
    isFleetNamespace(namespace, fleet.namespaces) && hasLabels(labels);
}

/** The workloads are those of one namespace: the vClusters in it that are more than the fleet syncs there, of which the youngest are left out. */
export function surplusOf(workloads: readonly KubeObject[], fleet: FleetConfig): ReadonlySet<ObjectKey> {
  const created = new Map<ObjectKey, string>();
  for (const workload of workloads.filter(isSelected(fleet))) {
    const { creationTimestamp = '' } = workload.metadata;
    const key = objectKey(workload);
    const before = created.get(key);
    if (before === undefined || creationTimestamp < before) created.set(key, creationTimestamp);
  }
  const byAge = [...created].toSorted(([a, x], [b, y]) => (x === y ? (a < b ? -1 : 1) : x < y ? -1 : 1));
  return new Set(byAge.slice(fleet.limits.membersPerNamespace).map(([key]) => key));
}

export function surplusReason({ limits: { membersPerNamespace } }: FleetConfig): string {
  return (
    `its namespace has ${membersPerNamespace} older vClusters of the fleet, and endpointSyncer.fleet.limits.membersPerNamespace is ${membersPerNamespace}: ` +
    'not synced, its copies stay; delete an older one, take its label away, or raise the limit'
  );
}

/** With the contents of its Secrets and its ConfigMap. */
export function decideMember(objects: VclusterObjects, rules: FleetRules): MemberDecision {
  const { namespace, name, access, values, overlay } = objects;
  const decided =
    decideByWorkload(objects, rules) ?? decideByPresence(objects) ?? decideByAccess(objects, access);
  if (decided !== undefined) return decided;
  const read = memberTexts(objects, { values, overlay });
  if ('kind' in read) return read;
  return decideByConfig(memberConfig({ ...rules, ...read, vcluster: { namespace, name } }));
}

/** Where the contents of its Secrets and ConfigMap make no difference, which take long to parse. Undefined: they do. */
export function decideByWorkload(
  objects: VclusterObjects,
  rules: FleetRules,
): Exclude<MemberDecision, { kind: 'joined' }> | undefined {
  const { workloads, values } = objects;
  const [workload, second] = workloads;
  if (workload === undefined) return { kind: values === undefined ? 'deleted' : 'removed' };
  if (!workloads.some(isSelected(rules.fleet))) return { kind: 'left' };
  if (objects.namespace === rules.host.namespace) {
    const reason = `it is in the fleet's own namespace "${objects.namespace}": install it in another one`;
    return { kind: 'invalid', reason };
  }
  if (second !== undefined) {
    const reason = `a StatefulSet and a Deployment of the name "${objects.name}" both have the label app=vcluster, so it is not known which is the vCluster: delete one, or remove the label of the one that is not`;
    return { kind: 'conflicting', reason };
  }
  const sleep = sleepOf(workload);
  return sleep === undefined ? undefined : { kind: 'asleep', reason: sleep };
}

/** Undefined: it has the Secrets that it needs. */
export function decideByPresence(objects: VclusterObjects): TextDecision | undefined {
  const { access, values } = objects;
  if (values === undefined) return missing(keyOf(valuesSecret(objects)), 'the chart of vCluster creates it');
  if (access === undefined)
    return missing(keyOf(accessSecret(objects)), 'vCluster writes it after its start');
  return undefined;
}

function missing(secret: string, by: string): TextDecision {
  return { kind: 'waiting', reason: `Secret ${secret} does not exist yet: ${by}` };
}

/** Undefined: its API server is meant to run. */
function sleepOf(workload: KubeObject): string | undefined {
  if (workload.metadata.annotations?.[PAUSED] === 'true') return `paused (annotation ${PAUSED})`;
  return valueAt(asJson(workload), ['spec', 'replicas']) === 0 ? 'scaled to 0 replicas' : undefined;
}

/** Undefined: the Secret has a kubeconfig. What it says is found out when it is used. */
export function decideByAccess(
  vcluster: NamespacedName,
  access: KubeObject | undefined,
): TextDecision | undefined {
  const text = access === undefined ? '' : secretText(access, ACCESS_KEY);
  const reason = unusable(`Secret ${keyOf(accessSecret(vcluster))}`, ACCESS_KEY, {
    text,
    required: 'kubeconfig',
  });
  return reason === undefined ? undefined : { kind: 'invalid', reason };
}

/** The texts that its configuration is read from, or why they cannot be read. */
export function memberTexts(
  vcluster: NamespacedName,
  { values, overlay }: Pick<VclusterObjects, 'values' | 'overlay'>,
): MemberTexts | TextDecision {
  const ofValues = `Secret ${keyOf(valuesSecret(vcluster))}`;
  const ofOverlay = `ConfigMap ${keyOf(overlayConfigMap(vcluster))}`;
  const text = values === undefined ? '' : secretText(values, VALUES_KEY);
  // A mapping of another vCluster may lead into this namespace, where copies have the names that tenants choose.
  const isTenants = overlay !== undefined && hasBookkeeping(overlay);
  const overlayText = isTenants ? undefined : overlay && textAt(asJson(overlay), 'data', VALUES_KEY);
  const reason =
    unusable(ofValues, VALUES_KEY, { text, required: 'values' }) ??
    unusable(ofOverlay, VALUES_KEY, { text: overlayText ?? '' });
  if (reason !== undefined) return { kind: 'invalid', reason };
  return {
    values: { text, file: ofValues },
    overlay: overlayText === undefined ? undefined : { text: overlayText, file: ofOverlay },
  };
}

export function decideByConfig(read: MemberConfig): TextDecision {
  if (read.config === undefined) return { kind: 'invalid', reason: read.invalid };
  return { kind: 'joined', config: read.config, warnings: read.warnings };
}

/** Why a text cannot be read. `required`: what it has to contain. */
function unusable(
  object: string,
  key: string,
  { text: { length }, required }: { readonly text: string; readonly required?: string },
): string | undefined {
  if (length === 0 && required !== undefined) return `${object} has no ${required} under the key ${key}`;
  if (length <= TEXT_CHARS_MAX) return undefined;
  return `${object} has ${length} characters under the key ${key}, more than ${TEXT_CHARS_MAX}: shorten it`;
}
