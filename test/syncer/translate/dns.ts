/** `virtualToHostDNS` of the sandbox in terms of the name translator, to compare with what runs there. */

import { DNS_LABEL_PATTERN } from '../../../src/kube/names.ts';
import { SERVICES } from '../../../src/kube/object.ts';
import type { NameTranslator } from '../../../src/syncer/translate/types.ts';

const LABEL = new RegExp(`^${DNS_LABEL_PATTERN}$`);

/** The DNS name of the host's Service, with everything around it as it is. Undefined: it cannot be translated. */
export function translateDnsName(text: string, names: NameTranslator): string | undefined {
  const scheme = /^[a-z][-+.a-z0-9]*:\/\//i.exec(text)?.[0] ?? '';
  const ends = ['/', '?', '#'].map((mark) => text.indexOf(mark, scheme.length)).filter((at) => at >= 0);
  const authority = text.slice(scheme.length, Math.min(text.length, ...ends));
  if (/[\s\\]/.test(authority)) return undefined;
  const hostAt = scheme === '' ? 0 : authority.lastIndexOf('@') + 1;
  const [host = '', ...ports] = authority.slice(hostAt).split(':');
  if (ports.length > 1 || !ports.every(isPort)) return undefined;

  const isAbsolute = host.endsWith('.');
  const labels = (isAbsolute ? host.slice(0, -1) : host).split('.');
  if (!labels.every((label) => LABEL.test(label))) return undefined;
  const service = splitService(labels);
  if (service === undefined) return undefined;
  const [hostnames, name = '', namespace = '', ...domain] = service;
  const on = names.referenceToHost({ name, namespace }, SERVICES);
  if (on === undefined) return undefined;
  const translated = [...hostnames, on.name, on.namespace, ...domain].join('.');
  if (translated.length > 253) return undefined;
  const at = scheme.length + hostAt;
  return text.slice(0, at) + translated + (isAbsolute ? '.' : '') + text.slice(at + host.length);
}

/** As an expression calls it. */
export function virtualToHostDNS(text: unknown, names: NameTranslator): string {
  const translated = typeof text === 'string' ? translateDnsName(text, names) : undefined;
  if (translated === undefined) throw new RangeError(`virtualToHostDNS cannot translate ${String(text)}`);
  return translated;
}

function splitService(labels: readonly string[]): [hostnames: string[], ...rest: string[]] | undefined {
  const [hostname = '', ...rest] = labels;
  if (rest[2] === 'svc') return [[hostname], ...rest];
  if (labels.length === 2 || labels[2] === 'svc') return [[], ...labels];
  return undefined;
}

function isPort(text: string): boolean {
  return /^[0-9]+$/.test(text) && text.length <= 5 && Number(text) >= 1 && Number(text) < 2 ** 16;
}
