/** Rules between fields. They read the file as written, so that one invalid field does not hide another. */

import { isJsonObject, type JsonObject } from '../base/json.ts';
import { labelKeyProblem, labelValueProblem } from '../kube/names.ts';
import { Fields, isMultiNamespace, pathOf } from './schema/fields.ts';
import {
  errorAtKey,
  errorAtValue,
  type Finding,
  missingMember,
  warningAtKey,
  warningAtValue,
} from './finding.ts';
import { OWNER_API_VERSIONS } from './schema/editor-rules.ts';
import type { ConfigChecks } from './types.ts';
import { parseBindAddress } from '../base/bind-address.ts';

/** `merged`: the configuration file over vCluster's values. */
export function checkRules(merged: JsonObject, checks: ConfigChecks): Finding[] {
  const fields = new Fields(merged);
  return [
    ...namespaceRules(fields, checks),
    ...selectorRules(fields),
    ...accessRules(fields),
    ...ownerRules(fields),
    ...durationRules(fields),
    ...managementRules(fields),
  ];
}

function namespaceRules(fields: Fields, checks: ConfigChecks): Finding[] {
  const enabledPath = 'sync.toHost.namespaces.enabled';
  const byNamePath = pathOf('sync.toHost.namespaces.mappings.byName');
  const byName = fields.object('sync.toHost.namespaces.mappings.byName');
  const isMapped = fields.isOn(enabledPath);
  const isLegacy = fields.isOn('experimental.multiNamespaceMode.enabled');
  if (!isMapped) {
    const isIgnored = Object.keys(byName).length > 0 || fields.isOn('sync.toHost.namespaces.mappingsOnly');
    return isIgnored
      ? [warningAtKey(pathOf('sync.toHost.namespaces'), `has no effect while ${enabledPath} is false`)]
      : [];
  }
  const findings: Finding[] = [];
  if (isLegacy) {
    findings.push(
      errorAtValue(
        pathOf('experimental.multiNamespaceMode.enabled'),
        `cannot be combined with ${enabledPath}: both map the same namespaces, disable one of them`,
      ),
    );
  }
  if (Object.keys(byName).length === 0) {
    findings.push(errorAtKey(byNamePath, `are empty: ${enabledPath} needs at least one mapping`));
  }
  const texts: Record<string, string> = {};
  for (const [key, value] of Object.entries(byName)) if (typeof value === 'string') texts[key] = value;
  const name = fields.text('endpointSyncer.name');
  for (const { key, message } of checks.checkNamespaceMappings(
    texts,
    name,
    fields.text('endpointSyncer.host.namespace'),
    fields.text('managementApi.store.namespace'),
  )) {
    findings.push(errorAtKey([...byNamePath, key], message));
  }
  return findings;
}

/** What an API server would reject in a LabelSelector. */
function selectorRules(fields: Fields): Finding[] {
  const path = pathOf('endpointSyncer.selector');
  const findings: Finding[] = [];
  for (const [key, value] of Object.entries(fields.object('endpointSyncer.selector.matchLabels'))) {
    const problem = labelKeyProblem(key);
    if (problem !== undefined) findings.push(errorAtKey([...path, 'matchLabels', key], problem));
    const wrong = typeof value === 'string' ? labelValueProblem(value) : undefined;
    if (wrong !== undefined) findings.push(errorAtValue([...path, 'matchLabels', key], wrong));
  }
  const expressions = fields.value('endpointSyncer.selector.matchExpressions');
  for (const [at, one] of (Array.isArray(expressions) ? expressions : []).entries()) {
    if (!isJsonObject(one)) continue;
    const place = [...path, 'matchExpressions', at];
    const { key, operator, values } = one;
    const problem = typeof key === 'string' ? labelKeyProblem(key) : undefined;
    if (problem !== undefined) findings.push(errorAtValue([...place, 'key'], problem));
    const list = Array.isArray(values) ? values : [];
    for (const [index, value] of list.entries()) {
      const wrong = typeof value === 'string' ? labelValueProblem(value) : undefined;
      if (wrong !== undefined) findings.push(errorAtValue([...place, 'values', index], wrong));
    }
    const isSet = operator === 'In' || operator === 'NotIn';
    if (isSet && list.length === 0)
      findings.push(errorAtKey(place, `the operator ${operator} needs at least one value`));
    if ((operator === 'Exists' || operator === 'DoesNotExist') && list.length > 0)
      findings.push(errorAtValue([...place, 'values'], `the operator ${operator} has no values`));
  }
  return findings;
}

function accessRules(fields: Fields): Finding[] {
  const [kubeconfig, secret] = ['endpointSyncer.virtual.kubeconfig', 'endpointSyncer.virtual.secret'];
  const findings: Finding[] = [];
  if (fields.text(kubeconfig) !== '' && fields.text(secret) !== '') {
    findings.push(errorAtValue(pathOf(secret), `cannot be combined with ${kubeconfig}: set one of the two`));
  }
  const server = 'endpointSyncer.virtual.server';
  const url = fields.text(server);
  if (url !== '' && !isServerUrl(url)) {
    findings.push(
      errorAtValue(pathOf(server), 'must be the URL of an API server such as https://my-vcluster.team-a'),
    );
  }
  return findings;
}

function isServerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/u.test(url.protocol)) return false;
  return url.search === '' && url.hash === '' && url.username === '' && url.password === '';
}

function ownerRules(fields: Fields): Finding[] {
  const owner = 'endpointSyncer.owner';
  const has = (key: string): boolean => fields.text(`${owner}.${key}`) !== '';
  if (!has('kind') && !has('name') && !has('apiVersion')) return [];
  const findings: Finding[] = [];
  // A Service without a name is vCluster's.
  const required = fields.text(`${owner}.kind`) === 'Service' ? [] : ['kind', 'name'];
  for (const key of required) {
    if (!has(key))
      findings.push(missingMember(pathOf(`${owner}.${key}`), 'is required if endpointSyncer.owner is set'));
  }
  if (has('kind') && !has('apiVersion') && !OWNER_API_VERSIONS.has(fields.text(`${owner}.kind`))) {
    const message = `is required for the kind ${fields.text(`${owner}.kind`)}`;
    findings.push(missingMember(pathOf(`${owner}.apiVersion`), message));
  }
  if (isMultiNamespace(fields)) {
    findings.push(
      warningAtKey(
        pathOf(owner),
        'has no effect with several host namespaces: an owner must be in the namespace of its copies',
      ),
    );
  }
  return findings;
}

function durationRules(fields: Fields): Finding[] {
  const findings: Finding[] = [];
  const order = (smaller: [string, string], larger: [string, string], prefix: string): void => {
    const [low, high] = [
      fields.durationMs(`${prefix}.${smaller[0]}`, smaller[1]),
      fields.durationMs(`${prefix}.${larger[0]}`, larger[1]),
    ];
    if (low > high) {
      const [small, large] = [smaller, larger].map(([key, fallback]) => {
        return `${key} (${fields.text(`${prefix}.${key}`, fallback)})`;
      });
      const at = fields.value(`${prefix}.${larger[0]}`) === undefined ? smaller[0] : larger[0];
      findings.push(errorAtValue(pathOf(`${prefix}.${at}`), `${small} must not be longer than ${large}`));
    }
  };
  order(['expressionTimeout', '100ms'], ['batchTimeout', '1s'], 'endpointSyncer.sandbox');
  order(['renewDeadline', '10s'], ['leaseDuration', '15s'], 'endpointSyncer.leaderElection');
  order(['retryPeriod', '2s'], ['renewDeadline', '10s'], 'endpointSyncer.leaderElection');
  order(['default', '24h'], ['max', '168h'], 'managementApi.tokenTtl');
  return findings;
}

// Rules between fields of `managementApi`, and warnings.

function managementRules(fields: Fields): Finding[] {
  return [
    ...certificateRules(fields),
    ...issuerRules(fields),
    ...addressRules(fields),
    ...lifetimeRules(fields),
    ...storeRules(fields),
  ];
}

function certificateRules(fields: Fields): Finding[] {
  const [cert, key] = ['managementApi.tls.certFile', 'managementApi.tls.keyFile'];
  if ((fields.text(cert) === '') === (fields.text(key) === '')) return [];
  const [missing, there] = fields.text(cert) === '' ? [cert, key] : [key, cert];
  return [errorAtKey(pathOf(missing), `is required with ${there}`)];
}

/** The issuers that a kube-apiserver accepts. */
function issuerRules(fields: Fields): Finding[] {
  const issuer = fields.text('managementApi.issuer');
  if (issuer === '') return [];
  const url = URL.parse(issuer);
  const path = pathOf('managementApi.issuer');
  if (url === null || url.protocol !== 'https:') return [errorAtValue(path, 'must be an https:// URL')];
  const isPlain = url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  return isPlain ? [] : [errorAtValue(path, 'must have no user, query or fragment')];
}

/** The server listens on all addresses; a client cannot connect to these. */
const UNSPECIFIED_HOSTS: ReadonlySet<string> = new Set(['', '0.0.0.0', '::']);

function addressRules(fields: Fields): Finding[] {
  const name = 'managementApi.bindAddress';
  const address = parseBindAddress(fields.text(name));
  if (address === undefined) return [];
  const findings: Finding[] = [];
  if (UNSPECIFIED_HOSTS.has(address.host) && fields.text('managementApi.issuer') === '') {
    const message =
      'clients cannot connect to this address, and it is the default issuer of tokens: set managementApi.issuer to the URL at which clusters reach this API';
    findings.push(warningAtValue(pathOf(name), message));
  }
  const other = parseBindAddress(fields.text('endpointSyncer.http.bindAddress', '127.0.0.1:8080'));
  const isSame = other?.port === address.port && other.host === address.host;
  if (fields.isOn('managementApi.enabled') && isSame && address.port !== 0) {
    findings.push(errorAtValue(pathOf(name), 'is also endpointSyncer.http.bindAddress: choose another port'));
  }
  return findings;
}

/** A token cannot outlive the key that issued it. */
function lifetimeRules(fields: Fields): Finding[] {
  const longestMs = fields.durationMs('managementApi.maxTtl', '0s');
  if (!(longestMs > 0)) return [];
  return ['default', 'max'].flatMap((field) => {
    const name = `managementApi.tokenTtl.${field}`;
    const text = fields.text(name);
    if (text === '' || !(fields.durationMs(name, text) > longestMs)) return [];
    const longest = fields.text('managementApi.maxTtl');
    const message = `${field} (${text}) is longer than managementApi.maxTtl (${longest}): a token expires with its key at the latest`;
    return [warningAtValue(pathOf(name), message)];
  });
}

function storeRules(fields: Fields): Finding[] {
  const name = 'managementApi.store.driver';
  if (fields.text(name) === 'kubernetes') return storeNamespaceRules(fields);
  if (fields.text(name) !== 'memory') return [];
  return [warningAtValue(pathOf(name), 'all keys are lost when the process exits; use it for tests only')];
}

/** In the host namespace, references of tenants can name the Secrets of the store. */
function storeNamespaceRules(fields: Fields): Finding[] {
  const [store, host] = ['managementApi.store.namespace', 'endpointSyncer.host.namespace'];
  const isShared = fields.text(store) === '' || fields.text(store) === fields.text(host);
  if (!fields.isOn('managementApi.enabled') || !isShared) return [];
  const message =
    "the Secrets of the key store are in the virtual cluster's host namespace, where references of tenants can name them: " +
    `set ${store} to a separate namespace`;
  return [warningAtValue(pathOf('managementApi.store.driver'), message)];
}
