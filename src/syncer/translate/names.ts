/** The naming rules, as pure functions; the configuration selects one of them elsewhere. */

import { hash } from 'node:crypto';
import { LABEL_LENGTH_MAX } from '../../kube/names.ts';

/** Length of the prefix that is kept of a longer name, before a dash and digits of its digest. */
const KEPT_BYTES = 52;
const DIGEST_DIGITS = 10;
const SHORT_DIGITS = 13;

/** Kinds whose objects a syncer copies under their long names, referenced or not: `group/Kind`. */
const COPIED_BY_KIND: ReadonlySet<string> = new Set([
  '/Endpoints',
  '/Pod',
  '/Service',
  'discovery.k8s.io/EndpointSlice',
]);

/** True if objects of this kind are never imported for a reference: a second Pod would run, a second Service would have an address. */
export function isCopiedByKind({ group, kind }: { readonly group: string; readonly kind: string }): boolean {
  return COPIED_BY_KIND.has(`${group}/${kind}`);
}

/** Joins with dashes; more than 63 bytes are cut and closed with a digest of the whole, so that different names stay different. */
export function safeConcat(parts: readonly string[]): string {
  return shorten(parts.join('-'));
}

function shorten(full: string): string {
  // UTF-16 units never outnumber UTF-8 bytes, and three times as many bytes is the most there can be.
  if (full.length * 3 <= LABEL_LENGTH_MAX) return full;
  const bytes = Buffer.byteLength(full);
  if (bytes <= LABEL_LENGTH_MAX) return full;
  const isAscii = bytes === full.length;
  const kept = isAscii ? full.slice(0, KEPT_BYTES) : Buffer.from(full).subarray(0, KEPT_BYTES).toString();
  return `${kept}-${hash('sha256', full, 'hex').slice(0, DIGEST_DIGITS)}`.replaceAll('.-', '-');
}

/** Single-namespace name of a namespaced object; an empty name stays empty. */
export function hostName(name: string, namespace: string, vcluster: string): string {
  return name === '' ? '' : shorten(`${name}-x-${namespace}-x-${vcluster}`);
}

/** `v` and 13 digits in base 36: short enough for any name field, and never to be mistaken for a user's name. */
export function hostNameShort(name: string, namespace: string, vcluster: string): string {
  if (name === '') return '';
  const hex = hash('sha256', `${name}-x-${namespace}-x-${vcluster}`, 'hex');
  return `v${base36(hex).slice(0, SHORT_DIGITS)}`;
}

/** Most significant digit first, one `0` in front for each leading zero byte. */
function base36(hex: string): string {
  let zeroBytes = 0;
  while (hex.startsWith('00', zeroBytes * 2)) zeroBytes++;
  return '0'.repeat(zeroBytes) + BigInt(`0x${hex}`).toString(36);
}

export function clusterScopedName(name: string, hostNamespace: string, vcluster: string): string {
  return name === '' ? '' : safeConcat(['vcluster', name, 'x', hostNamespace, 'x', vcluster]);
}

/** Host namespace of a virtual namespace in vCluster 0.25's multi-namespace mode. */
export function legacyHostNamespace(virtualNamespace: string, suffix: string): string {
  return `vcluster-${digest8(virtualNamespace)}-${suffix}`;
}

/** The part that all host namespaces of one virtual cluster share in that mode. */
export function legacySuffix(hostNamespace: string, vcluster: string): string {
  return digest8(`${hostNamespace}x${vcluster}`);
}

function digest8(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 8);
}
