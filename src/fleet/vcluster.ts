/** A vCluster on the host: its workload, its Secrets, and the ConfigMap that may overlay its values, by their names. */

import { textAt } from '../base/json.ts';
import { asJson, type KubeObject, type NamespacedName, type Resource } from '../kube/object.ts';

const APPS = { group: 'apps', version: 'v1', isNamespaced: true } as const;

export const STATEFUL_SETS: Resource = { ...APPS, kind: 'StatefulSet', plural: 'statefulsets' };
export const DEPLOYMENTS: Resource = { ...APPS, kind: 'Deployment', plural: 'deployments' };

/** The workloads of vClusters. */
export const VCLUSTER_LABEL = 'app=vcluster';

/** Annotation of the workload of a vCluster that is paused. */
export const PAUSED = 'loft.sh/paused';

/** The key of the Secret with the values, and of the ConfigMap. */
export const VALUES_KEY = 'config.yaml';
/** The key of the Secret with the kubeconfig. */
export const ACCESS_KEY = 'config';

/** Of values, a ConfigMap or a kubeconfig. vCluster's own values have some 20 KiB. It takes up to half a second to read this much. */
export const TEXT_CHARS_MAX = 128 * 1024;

/** Annotation of the Lease of a member: the fleet's own namespace, which has the configuration of the fleet. */
export const FLEET = 'endpoint-syncer/fleet';

export function accessSecret({ namespace, name }: NamespacedName): NamespacedName {
  return { namespace, name: `vc-${name}` };
}

export function valuesSecret({ namespace, name }: NamespacedName): NamespacedName {
  return { namespace, name: `vc-config-${name}` };
}

export function overlayConfigMap({ namespace, name }: NamespacedName): NamespacedName {
  return { namespace, name: `endpoint-syncer-${name}` };
}

/** The names of the vClusters that a Secret or ConfigMap of this name may belong to: `vc-config-a` may be the access to `config-a`. */
export function vclustersOf(kind: 'Secret' | 'ConfigMap', name: string): readonly string[] {
  const prefixes = kind === 'Secret' ? ['vc-', 'vc-config-'] : ['endpoint-syncer-'];
  return prefixes
    .filter((prefix) => name.startsWith(prefix) && name.length > prefix.length)
    .map((prefix) => name.slice(prefix.length));
}

/** What the host has of one vCluster. */
export interface VclusterObjects extends NamespacedName {
  /** Its StatefulSet or Deployment; two if both exist under its name. */
  readonly workloads: readonly KubeObject[];
  /** Undefined: it does not exist. */
  readonly access: KubeObject | undefined;
  readonly values: KubeObject | undefined;
  readonly overlay: KubeObject | undefined;
}

/** The text of one key of a Secret; '' if there is none. */
export function secretText(secret: KubeObject, key: string): string {
  return Buffer.from(textAt(asJson(secret), 'data', key), 'base64').toString('utf8');
}

/** vCluster's default, which only its own Pod reaches. */
const DEFAULT_SERVER = 'https://localhost:8443';

/** The Service of the vCluster instead of the default URL, because its certificate names it; any other URL as it is. */
export function serverOf(vcluster: NamespacedName): (ofSecret: string) => string {
  return (ofSecret) =>
    ofSecret.replace(/\/+$/u, '') === DEFAULT_SERVER
      ? `https://${vcluster.name}.${vcluster.namespace}`
      : ofSecret;
}
