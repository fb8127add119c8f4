/**
 * What the sync and the key and token API have in common in the one file of both: the fields that both read, and the rules across their sections.
 * Neither knows the other.
 */

import { parseBindAddress } from '../base/bind-address.ts';
import { nearestWord } from '../base/suggest.ts';
import {
  errorAtKey,
  errorAtValue,
  pathOf,
  warningAtKey,
  warningAtValue,
  type Fields,
  type Finding,
} from '../config-file/finding.ts';
import { bindAddress, choice, optionalMatch, path, section, text } from '../config-file/schema-fields.ts';
import { DNS_LABEL_OR_EMPTY, DNS_LABEL_RULE } from '../kube/names.ts';

/** Sections of this program. They may name secrets, so expressions cannot read them. */
export const OWN_SECTIONS: ReadonlySet<string> = new Set(['endpointSyncer', 'managementApi']);

/** Those that this program reads. */
const SECTIONS: readonly string[] = ['sync', 'experimental', ...OWN_SECTIONS];

/** A file without `endpointSyncer` is for the key and token API alone, which `validate` knows by the same sections. */
export const SECTIONS_SCHEMA = {
  anyOf: [{ required: ['endpointSyncer'] }, { required: ['managementApi'], not: { required: ['sync'] } }],
};

// Fields of `endpointSyncer` that both read.

export const host = section('Access to the host cluster.', {
  kubeconfig: path(
    'Path of the kubeconfig of the host cluster. Empty: in-cluster, then KUBECONFIG, then ~/.kube/config.',
  ),
  context: text('Context in that kubeconfig. Empty: its current context.'),
  namespace: optionalMatch(
    "Namespace of the virtual cluster on the host. Empty: the Pod's own in a cluster, else that of the context.",
    DNS_LABEL_OR_EMPTY,
    DNS_LABEL_RULE,
  ),
});

/** The default of `endpointSyncer.http.bindAddress`. */
const HTTP_ADDRESS = '127.0.0.1:8080';

export const http = section('', {
  bindAddress: bindAddress('Address of /healthz, /readyz and /metrics.', HTTP_ADDRESS),
});

export const log = section('', {
  level: choice('Minimum level of the log.', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
  format: choice('auto: pretty on a terminal, else json.', ['json', 'pretty', 'auto'], 'auto'),
});

/** A file of them and `managementApi` alone is for the key and token API. */
export const SHARED_FIELDS = { host, http, log };

export const vclusterConfig = path(
  "Path of vCluster's own values file, unchanged. This file overlays it. Empty: none.",
);

// Rules across both.

export function rulesAcross(fields: Fields): Finding[] {
  return [...sameAddress(fields), ...storeInHostNamespace(fields), ...mappingsOfStore(fields)];
}

function sameAddress(fields: Fields): Finding[] {
  const name = 'managementApi.bindAddress';
  const [api, http] = [
    parseBindAddress(fields.text(name)),
    parseBindAddress(fields.text('endpointSyncer.http.bindAddress', HTTP_ADDRESS)),
  ];
  const isSame = api !== undefined && http?.port === api.port && http.host === api.host;
  if (!fields.isOn('managementApi.enabled') || !isSame || api.port === 0) return [];
  return [errorAtValue(pathOf(name), 'is also endpointSyncer.http.bindAddress: choose another port')];
}

const STORE_NAMESPACE = 'managementApi.store.namespace';

/** In the host namespace, references of tenants can name the Secrets of the store. */
function storeInHostNamespace(fields: Fields): Finding[] {
  const driver = 'managementApi.store.driver';
  const store = fields.text(STORE_NAMESPACE);
  const isShared = store === '' || store === fields.text('endpointSyncer.host.namespace');
  if (fields.text(driver) !== 'kubernetes' || !fields.isOn('managementApi.enabled') || !isShared) return [];
  const message =
    "the Secrets of the key store are in the virtual cluster's host namespace, where references of tenants can name them: " +
    `set ${STORE_NAMESPACE} to a separate namespace`;
  return [warningAtValue(pathOf(driver), message)];
}

/** A tenant who can write where the Secrets of the store are could put an old one back. */
function mappingsOfStore(fields: Fields): Finding[] {
  const namespaces = 'sync.toHost.namespaces';
  const store = fields.text(STORE_NAMESPACE);
  if (store === '' || !fields.isOn(`${namespaces}.enabled`)) return [];
  const byName = `${namespaces}.mappings.byName`;
  return Object.entries(fields.object(byName)).flatMap(([virtual, host]) => {
    if (typeof host !== 'string' || !reachesNamespace(host, fields.text('endpointSyncer.name'), store))
      return [];
    const message = `${describeMapping(host)} conflicts with namespace of the key store '${store}'`;
    return [errorAtKey([...pathOf(byName), virtual], message)];
  });
}

/** Whether the host side of a namespace mapping, a name or a pattern, stands for this namespace too. */
export function reachesNamespace(host: string, vcluster: string, namespace: string): boolean {
  const resolved = host.replaceAll('${name}', () => vcluster);
  return resolved.includes('*') ? namespace.startsWith(resolved.slice(0, -1)) : resolved === namespace;
}

export function describeMapping(host: string): string {
  return host.includes('*') ? `host namespace pattern '${host}'` : `host namespace mapping '${host}'`;
}

/** Top-level keys that resemble a section; all others belong to vCluster. `hintOf`: where another known key belongs. */
export function misspeltSections(
  own: Fields,
  theirs: readonly string[],
  hintOf: (key: string) => string | undefined = () => undefined,
): Finding[] {
  return misspeltKeys('', { keys: own.keys(''), known: SECTIONS, theirs, hintOf });
}

interface KeysOfSection {
  readonly keys: readonly string[];
  readonly known: readonly string[];
  /** Keys of vCluster. */
  readonly theirs: readonly string[];
  readonly hintOf: (key: string) => string | undefined;
}

/** Unknown keys outside our own sections belong to vCluster, but one that resembles a key of this program is most likely a typo. */
export function misspeltKeys(section: string, { keys, known, theirs, hintOf }: KeysOfSection): Finding[] {
  return keys
    .filter((key) => !known.includes(key) && !theirs.includes(key))
    .flatMap((key) => {
      const hint = hintOf(key);
      const near = hint === undefined ? nearestWord(key, known) : undefined;
      const message = `this key is not read: ${hint ?? `did you mean "${near}"?`}`;
      const warning = warningAtKey([...pathOf(section), key], message);
      if (near !== undefined) return [{ ...warning, meant: [...pathOf(section), near] }];
      return hint === undefined ? [] : [warning];
    });
}
