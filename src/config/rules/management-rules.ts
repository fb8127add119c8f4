/** Rules between fields of `managementApi`, and warnings. */

import { parseBindAddress } from '../../base/bind-address.ts';
import { type Fields, pathOf } from '../schema/fields.ts';
import { errorAtKey, errorAtValue, type Finding, warningAtValue } from '../finding.ts';

export function managementRules(fields: Fields): Finding[] {
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
