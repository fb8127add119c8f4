/**
 * What is never copied for a reference, whoever asks: objects that a syncer manages, credentials of the host's service accounts, and the
 * secrets of the virtual clusters themselves. The data inside a virtual cluster chooses names; it must not choose these. Pure.
 */

import type { KubeObject, Resource } from '../../kube/object.ts';
import { isJsonObject, ownValue, type JsonObject } from '../../lib/json.ts';
import { OBJECT_NAME } from '../../translate/bookkeeping.ts';
import { MANAGED_BY_LABEL } from '../../translate/labels.ts';

export interface RefusalRules {
  /** The virtual cluster's name. */
  readonly vcluster: string;
  /** `endpointSyncer.virtual.secret`, '' where there is none. */
  readonly kubeconfigSecret: string;
}

const SERVICE_ACCOUNT_TOKEN = 'kubernetes.io/service-account-token';
const BOOTSTRAP_TOKEN = 'bootstrap.kubernetes.io/token';
const HELM_RELEASE = 'helm.sh/release.v1';
/** A Secret of the type `kubernetes.io/service-account-token` cannot be without it, so metadata tell. */
export const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name';

/** What vCluster keeps in its host namespace, its own or a neighbour's: kubeconfig, configuration, tokens of its workloads. */
const VCLUSTER_OBJECT = /^vc-/;
/** The signing key of service accounts, and a control plane's own kubeconfig: no Secret with these is anybody's but an administrator's. */
const CONTROL_PLANE_KEYS = ['sa.key', 'admin.conf'];
const HELM_SECRET = /^sh\.helm\.release\./;
const BOOTSTRAP_SECRET = /^bootstrap-token-/;

/** Why this object of the host must not be read into the virtual cluster; undefined: it may. Metadata are enough. */
export function refusalOfSource(
  object: KubeObject,
  resource: Resource,
  rules: RefusalRules,
): string | undefined {
  const { labels, annotations, name } = object.metadata;
  if (labels?.[MANAGED_BY_LABEL] !== undefined || annotations?.[OBJECT_NAME] !== undefined) {
    return 'it is the copy of an object of a virtual cluster';
  }
  if (resource.group !== '') return undefined;
  if (resource.kind === 'ConfigMap' && VCLUSTER_OBJECT.test(name)) {
    return 'it belongs to a virtual cluster itself';
  }
  if (resource.kind !== 'Secret') return undefined;
  if (annotations?.[SERVICE_ACCOUNT_NAME] !== undefined) return 'it is the token of a service account';
  if (name === rules.kubeconfigSecret) return 'it is the kubeconfig of the virtual cluster';
  if (isNameOfVclusterSecret(name, rules.vcluster)) return 'it holds keys of a virtual cluster';
  if (HELM_SECRET.test(name)) return 'it is the record of a Helm release';
  if (BOOTSTRAP_SECRET.test(name)) return 'it is a bootstrap token';
  return undefined;
}

/** The same for what only the whole object tells. */
export function refusalOfContent(object: KubeObject, resource: Resource): string | undefined {
  if (resource.group !== '' || resource.kind !== 'Secret') return undefined;
  const data = ownValue(object as unknown as JsonObject, 'data'); // raw JSON below metadata
  const hasKeys = isJsonObject(data) && CONTROL_PLANE_KEYS.some((key) => Object.hasOwn(data, key));
  return hasKeys ? 'it holds keys of a control plane' : refusalOfType(object, resource);
}

/**
 * Secrets that mean something to a cluster, in either direction: the host would fill a token of a tenant's with one of its own service
 * accounts', and Helm would take a tenant's release for one of the host's.
 */
export function refusalOfType(object: KubeObject, resource: Resource): string | undefined {
  if (resource.group !== '' || resource.kind !== 'Secret') return undefined;
  switch (object['type']) {
    case SERVICE_ACCOUNT_TOKEN:
      return 'it is the token of a service account';
    case BOOTSTRAP_TOKEN:
      return 'it is a bootstrap token';
    case HELM_RELEASE:
      return 'it is the record of a Helm release';
    default:
      return undefined;
  }
}

function isNameOfVclusterSecret(name: string, vcluster: string): boolean {
  if (VCLUSTER_OBJECT.test(name)) return true;
  return name.startsWith(`${vcluster}-`) && /-(certs|token|kubeconfig)$/.test(name);
}
