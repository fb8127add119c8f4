/** Whether a vCluster is a member of the fleet, and what becomes of it, from what the host has of it. Pure. */

import { textAt, valueAt } from '../base/json.ts';
import type { ConfigProblem } from '../base/errors.ts';
import type { Config, FleetConfig } from '../config/config.ts';
import { isFleetNamespace } from '../config/fleet-rules.ts';
import { parseLabelSelector, type LabelPredicate } from '../kube/label-selector.ts';
import { asJson, keyOf, type KubeObject } from '../kube/object.ts';
import { selectorText } from '../syncer/kinds/synced-kinds.ts';
import { memberConfig, type MemberRules } from './member-config.ts';
import {
  ACCESS_KEY,
  accessSecret,
  overlayConfigMap,
  secretText,
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

export interface FleetRules extends MemberRules {
  readonly fleet: FleetConfig;
}

/** With the value `true`, a vCluster is a member, unless the fleet has a selector of its own. */
export const MEMBER_LABEL = 'endpoint-syncer/enabled';
const DEFAULT_SELECTOR = `${MEMBER_LABEL}=true`;
const PAUSED = 'loft.sh/paused';

/** The selector of the workloads as text; that of {@link FleetConfig} may be empty. */
export function memberSelector({ selector }: FleetConfig): string {
  return selectorText(selector) || DEFAULT_SELECTOR;
}

export function isSelected(fleet: FleetConfig): (workload: KubeObject) => boolean {
  const hasLabels: LabelPredicate = parseLabelSelector(memberSelector(fleet));
  return ({ metadata: { namespace = '', labels = {} } }) =>
    isFleetNamespace(namespace, fleet.namespaces) && hasLabels(labels);
}

export function decideMember(objects: VclusterObjects, rules: FleetRules): MemberDecision {
  const { access, values } = objects;
  const decided = decideByWorkload(objects, rules);
  if (decided !== undefined) return decided;
  if (values === undefined) return missing(keyOf(valuesSecret(objects)), 'the chart of vCluster creates it');
  if (access === undefined)
    return missing(keyOf(accessSecret(objects)), 'vCluster writes it after its start');
  return fromContents(objects, { access, values }, rules);
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

function missing(secret: string, by: string): MemberDecision {
  return { kind: 'waiting', reason: `Secret ${secret} does not exist yet: ${by}` };
}

/** Undefined: its API server is meant to run. */
function sleepOf(workload: KubeObject): string | undefined {
  if (workload.metadata.annotations?.[PAUSED] === 'true') return `paused (annotation ${PAUSED})`;
  return valueAt(asJson(workload), ['spec', 'replicas']) === 0 ? 'scaled to 0 replicas' : undefined;
}

/** vCluster's own values have some 20 KiB. It takes up to half a second to parse this much, in which nothing else runs. */
const TEXT_CHARS_MAX = 128 * 1024;

function fromContents(
  vcluster: VclusterObjects,
  { access, values }: { readonly access: KubeObject; readonly values: KubeObject },
  rules: FleetRules,
): MemberDecision {
  const { namespace, name, overlay } = vcluster;
  const ofValues = `Secret ${keyOf(valuesSecret(vcluster))}`;
  const ofOverlay = `ConfigMap ${keyOf(overlayConfigMap(vcluster))}`;
  const text = secretText(values, VALUES_KEY);
  const overlayText = overlay && textAt(asJson(overlay), 'data', VALUES_KEY);
  const reason =
    unusable(`Secret ${keyOf(accessSecret(vcluster))}`, ACCESS_KEY, {
      text: secretText(access, ACCESS_KEY),
      required: 'kubeconfig',
    }) ??
    unusable(ofValues, VALUES_KEY, { text, required: 'values' }) ??
    unusable(ofOverlay, VALUES_KEY, { text: overlayText ?? '' });
  if (reason !== undefined) return { kind: 'invalid', reason };
  const result = memberConfig({
    ...rules,
    vcluster: { namespace, name },
    values: { text, file: ofValues },
    overlay: overlayText === undefined ? undefined : { text: overlayText, file: ofOverlay },
  });
  if (result.config === undefined) return { kind: 'invalid', reason: result.invalid };
  return { kind: 'joined', config: result.config, warnings: result.warnings };
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
