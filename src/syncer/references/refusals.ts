/** Objects that are never imported: objects that a syncer manages, Secrets of the key store, credentials of the host. Users of a virtual cluster
 * choose the names of references, and must not get access to these objects. Pure. */

import { textPattern } from '../../base/text-pattern.ts';
import type { Config } from '../config/config.ts';
import { asJson, type KubeObject, type Resource, type StringMap } from '../../kube/object.ts';
import { parseYaml } from '../../base/yaml/document.ts';
import { isJsonObject, ownValue, type JsonObject } from '../../base/json.ts';
import { OBJECT_NAME } from '../translate/bookkeeping.ts';
import { isProgramLabel, MANAGED_BY_LABEL } from '../translate/labels.ts';

export interface RefusalRules {
  readonly vcluster: string;
  /** `endpointSyncer.virtual.secret`, or ''. */
  readonly kubeconfigSecret: string;
  /** `references.refuseSecrets`: additional patterns for names, types and data keys. */
  readonly patterns: readonly TextPattern[];
  /** `references.onlyLabelled` as `KEY` or `KEY=VALUE`; '': no label is required. */
  readonly onlyLabelled: string;
}

/** Prefixes of the type and the name of Secrets in which the key and token API stores its objects. */
const STORE_TYPE_PREFIX = 'endpoint-syncer/';
const STORE_NAME_PREFIX = 'endpoint-syncer.';

/** Required on Secrets of type `kubernetes.io/service-account-token`, so metadata are enough to recognize them. */
export const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name';

const SERVICE_ACCOUNT_TOKEN = 'it is the token of a service account';
const BOOTSTRAP_TOKEN = 'it is a bootstrap token';
const HELM_RELEASE = 'it is the record of a Helm release';
const STORE_SECRET = 'it is a Secret of the key store';
const PLATFORM_KEY = 'it holds a platform key';

/** Type of a Secret → why it is refused, in either direction. */
const REFUSED_TYPES: Readonly<Record<string, string>> = {
  'kubernetes.io/service-account-token': SERVICE_ACCOUNT_TOKEN,
  'bootstrap.kubernetes.io/token': BOOTSTRAP_TOKEN,
  'helm.sh/release.v1': HELM_RELEASE,
};

/** Objects of any vCluster in the host namespace: kubeconfig, configuration, tokens of its workloads. */
const VCLUSTER_OBJECT = /^vc-/;
/** The signing key of service accounts, and kubeconfigs of a control plane. */
const CONTROL_PLANE_KEYS = ['sa.key', 'admin.conf', 'super-admin.conf'];
const HELM_SECRET = /^sh\.helm\.release\./;
const BOOTSTRAP_SECRET = /^bootstrap-token-/;
/** vCluster's default Secret for its platform access key. */
const PLATFORM_SECRET = 'vcluster-platform-api-key';

/** Labels by which other programs find the Secrets and ConfigMaps that they use. */
interface ProgramLabel extends ProgramKey {
  /** What the program keeps on the host under this label must not be read by tenants. */
  readonly isPrivate: boolean;
}

export const PROGRAM_LABELS: readonly ProgramLabel[] = [
  { program: 'Helm', key: 'owner', value: 'helm', isPrivate: true }, // lists its releases by it, whatever the type
  { program: 'Argo CD', key: 'argocd.argoproj.io/secret-type', isPrivate: true }, // clusters and credentials of repositories
  { program: 'Argo CD', key: 'app.kubernetes.io/part-of', value: 'argocd', isPrivate: true }, // its settings and keys
  { program: 'Sealed Secrets', key: 'sealedsecrets.bitnami.com/', isPrivate: true }, // its private keys
  { program: 'Istio', key: 'istio/multiCluster', isPrivate: true }, // kubeconfigs of the other clusters of a mesh
  { program: 'Jenkins', key: 'jenkins.io/credentials-type', isPrivate: true },
  { program: 'Flux', key: 'reconcile.fluxcd.io/', isPrivate: false }, // changes trigger a reconciliation
  { program: 'Grafana', key: 'grafana_dashboard', isPrivate: false },
  { program: 'Grafana', key: 'grafana_datasource', isPrivate: false },
];

/** A label or an annotation by which a program of the host acts on any object that bears it. */
interface ProgramKey {
  readonly program: string;
  /** A key that ends in `/` stands for every key with this prefix. */
  readonly key: string;
  /** Absent: any value. */
  readonly value?: string;
}

/** Copied, they would let a tenant order it what only the host's users may order. */
export const PROGRAM_KEYS: readonly ProgramKey[] = [
  { program: 'Helm', key: 'app.kubernetes.io/managed-by', value: 'Helm' }, // takes over what has it
  { program: 'Kubernetes Replicator', key: 'replicator.v1.mittwald.de/' }, // copies into other namespaces
  { program: 'Reflector', key: 'reflector.v1.k8s.emberstack.com/' }, // copies into other namespaces
  { program: 'Config Syncer', key: 'kubed.appscode.com/' }, // copies into other namespaces
  { program: 'Deckhouse', key: 'secret-copier.deckhouse.io/' }, // copies into other namespaces
  { program: 'Rancher', key: 'objectset.rio.cattle.io/' }, // deletes what its set does not have
  { program: 'Argo CD', key: 'app.kubernetes.io/instance' }, // prunes what its application does not have
  { program: 'Argo CD', key: 'argocd.argoproj.io/' }, // the same; also orders and hooks of a sync
  { program: 'kapp', key: 'kapp.k14s.io/' }, // deletes what its application does not have
  { program: 'kubectl apply --prune', key: 'applyset.kubernetes.io/' }, // deletes what its set does not have
  { program: 'cert-manager', key: 'cert-manager.io/allow-direct-injection' }, // reads certificates of webhooks from it
];

/** The object without the labels and annotations by which programs of the host would act on its copy. */
export function withoutProgramKeys(object: KubeObject): KubeObject {
  const { labels, annotations, ...metadata } = object.metadata;
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(labels && { labels: withoutKeys(labels) }),
      ...(annotations && { annotations: withoutKeys(annotations) }),
    },
  };
}

function withoutKeys(map: StringMap): StringMap {
  const isKept = ([key, value]: readonly [string, string]): boolean =>
    !PROGRAM_KEYS.some((row) => marks(row, key, value));
  return Object.fromEntries(Object.entries(map).filter(isKept));
}

function marks(row: ProgramKey, key: string, value: string): boolean {
  const isKey = row.key.endsWith('/') ? key.startsWith(row.key) : key === row.key;
  return isKey && (row.value === undefined || value === row.value);
}

export function refusalRules(config: Pick<Config, 'name' | 'virtual' | 'references'>): RefusalRules {
  const { refuseSecrets, onlyLabelled } = config.references;
  const patterns = refuseSecrets.map((text) => ({ text, test: textPattern(text) }));
  return { vcluster: config.name, kubeconfigSecret: config.virtual.secret, patterns, onlyLabelled };
}

/** Why this host object must not be imported, judged by its metadata; undefined: it may be imported. */
export function refusalOfSource(
  object: KubeObject,
  resource: Resource,
  rules: RefusalRules,
): string | undefined {
  const { labels, annotations, name } = object.metadata;
  if (labels?.[MANAGED_BY_LABEL] !== undefined || annotations?.[OBJECT_NAME] !== undefined) {
    return 'it is the copy of an object of a virtual cluster';
  }
  if (resource.group === '' && resource.kind === 'ConfigMap' && VCLUSTER_OBJECT.test(name)) {
    return 'it belongs to a virtual cluster itself';
  }
  return (
    (isSecret(resource) ? refusalOfSecretMetadata(object, rules) : undefined) ??
    refusalOfLabels(object, resource, ({ isPrivate }) => isPrivate) ??
    (isLabelled(object, rules)
      ? undefined
      : `it does not have the label ${rules.onlyLabelled}, which references.onlyLabelled requires`)
  );
}

export function refusalOfContent(
  object: KubeObject,
  resource: Resource,
  rules: RefusalRules,
): string | undefined {
  if (!isSecret(resource)) return undefined;
  const data = ownValue(asJson(object), 'data');
  const content = isJsonObject(data) ? data : {};
  if (CONTROL_PLANE_KEYS.some((key) => Object.hasOwn(content, key)))
    return 'it holds keys of a control plane';
  const values = textsOf(content);
  if (values.some(isKubeconfig)) return 'it holds a kubeconfig';
  if (values.some((value) => PLATFORM_KEY_TEXT.test(value))) return PLATFORM_KEY;
  const texts = [typeOf(object), ...Object.keys(content)];
  return refusalOfType(object) ?? texts.flatMap((text) => refusalByPattern(text, rules) ?? [])[0];
}

/** Virtual objects that would have an effect on the host: the host would put a token of its own service account into a tenant's token Secret, Helm
 * would list a tenant's release, and the key store would read objects that it did not write. */
export function refusalOfVirtual(object: KubeObject, resource: Resource): string | undefined {
  const refusal = isSecret(resource) ? (isOfStore(object) ? STORE_SECRET : refusalOfType(object)) : undefined;
  return refusal ?? refusalOfLabels(object, resource, () => true);
}

export function isPrivateLabel(key: string, value: string): boolean {
  return programOf(key, value, ({ isPrivate }) => isPrivate) !== undefined;
}

function programOf(key: string, value: string, applies: (row: ProgramLabel) => boolean): string | undefined {
  return PROGRAM_LABELS.find((row) => applies(row) && marks(row, key, value))?.program;
}

function refusalOfLabels(
  { metadata: { labels = {} } }: KubeObject,
  { group, kind }: Resource,
  applies: (row: ProgramLabel) => boolean,
): string | undefined {
  if (group !== '' || (kind !== 'Secret' && kind !== 'ConfigMap')) return undefined;
  for (const [key, value] of Object.entries(labels)) {
    const program = programOf(key, value, applies);
    if (program !== undefined) return `its label ${key}=${value} marks it as an object of ${program}`;
  }
  return undefined;
}

function refusalOfSecretMetadata(object: KubeObject, rules: RefusalRules): string | undefined {
  const { annotations, name } = object.metadata;
  if (isOfStore(object)) return STORE_SECRET;
  if (annotations?.[SERVICE_ACCOUNT_NAME] !== undefined) return SERVICE_ACCOUNT_TOKEN;
  if (name === rules.kubeconfigSecret) return 'it is the kubeconfig of the virtual cluster';
  if (isNameOfVclusterSecret(name, rules.vcluster)) return 'it holds keys of a virtual cluster';
  if (HELM_SECRET.test(name)) return HELM_RELEASE;
  if (BOOTSTRAP_SECRET.test(name)) return BOOTSTRAP_TOKEN;
  return name === PLATFORM_SECRET ? PLATFORM_KEY : refusalByPattern(name, rules);
}

function refusalOfType(object: KubeObject): string | undefined {
  const type = typeOf(object);
  if (type.startsWith(STORE_TYPE_PREFIX)) return STORE_SECRET;
  return Object.hasOwn(REFUSED_TYPES, type) ? REFUSED_TYPES[type] : undefined;
}

function typeOf({ type }: KubeObject): string {
  return typeof type === 'string' ? type : '';
}

function refusalByPattern(text: string, { patterns }: RefusalRules): string | undefined {
  const hit = patterns.find(({ test }) => test(text));
  return hit && `references.refuseSecrets has ${hit.text}`;
}

/** Each of type, name and labels is sufficient. */
function isOfStore(object: KubeObject): boolean {
  const { name, labels = {} } = object.metadata;
  return (
    name.startsWith(STORE_NAME_PREFIX) ||
    typeOf(object).startsWith(STORE_TYPE_PREFIX) ||
    Object.entries(labels).some(([key, value]) => isProgramLabel(key, value))
  );
}

interface TextPattern {
  readonly text: string;
  readonly test: (value: string) => boolean;
}

function isLabelled({ metadata: { labels = {} } }: KubeObject, { onlyLabelled }: RefusalRules): boolean {
  if (onlyLabelled === '') return true;
  const [key = '', value] = onlyLabelled.split('=', 2);
  return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
}

function isSecret({ group, kind }: Resource): boolean {
  return group === '' && kind === 'Secret';
}

function isNameOfVclusterSecret(name: string, vcluster: string): boolean {
  if (VCLUSTER_OBJECT.test(name)) return true;
  return name.startsWith(`${vcluster}-`) && /-(certs|token|kubeconfig)$/.test(name);
}

/** Longer texts that contain the members of a kubeconfig are treated as one without parsing. */
const PARSED_BYTES_MAX = 64 * 1024;
/** `cluster` and `user` lists, in YAML or JSON. */
const CLUSTERS = /["']?clusters["']?\s*:/;
const USERS = /["']?users["']?\s*:/;
/** Of a character of a text in double quotes. */
const ESCAPE = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/g;
/** The shape of a key of the key and token API: id, secret, checksum. */
const PLATFORM_KEY_TEXT = /\bpak_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/;

function isKubeconfig(text: string): boolean {
  const plain = text.replaceAll(ESCAPE, (_, ...codes: (string | undefined)[]) =>
    String.fromCodePoint(
      Math.min(Number.parseInt(codes.find((code) => code !== undefined) ?? '0', 16), 0x10ffff),
    ),
  );
  const hasMembers = CLUSTERS.test(plain) && USERS.test(plain);
  if (!text.includes('\\') && !hasMembers) return false;
  if (text.length > PARSED_BYTES_MAX) return hasMembers;
  const { json, isReadable } = parseYaml(text);
  if (!isReadable) return hasMembers; // a more lenient parser could read it as a kubeconfig
  return isJsonObject(json) && Array.isArray(json['clusters']) && Array.isArray(json['users']);
}

/** The values as text, decoded from base64. */
function textsOf(data: JsonObject): string[] {
  return Object.values(data).flatMap((value) =>
    typeof value === 'string' ? [Buffer.from(value, 'base64').toString('utf8')] : [],
  );
}
