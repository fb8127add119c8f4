/** Paths that can never match an object of a kind: a misspelt field, or a path in another notation. */

import { nearestWord } from '../../../config/rules/suggest.ts';
import type { Segment } from '../paths/path-syntax.ts';

export type PatchedKind = 'Endpoints' | 'EndpointSlice';

/** The fields of an object; `*`: any key; a string: no fields below. */
type Fields = { readonly [field: string]: Fields } | 'value' | 'any';

const REFERENCE: Fields = {
  apiVersion: 'value',
  fieldPath: 'value',
  kind: 'value',
  name: 'value',
  namespace: 'value',
  resourceVersion: 'value',
  uid: 'value',
};
const METADATA: Fields = {
  annotations: { '*': 'value' },
  creationTimestamp: 'value',
  deletionGracePeriodSeconds: 'value',
  deletionTimestamp: 'value',
  finalizers: { '*': 'value' },
  generateName: 'value',
  generation: 'value',
  labels: { '*': 'value' },
  managedFields: 'any',
  name: 'value',
  namespace: 'value',
  ownerReferences: 'any',
  resourceVersion: 'value',
  selfLink: 'value',
  uid: 'value',
};
const PORT: Fields = { appProtocol: 'value', name: 'value', port: 'value', protocol: 'value' };
const ADDRESS: Fields = { hostname: 'value', ip: 'value', nodeName: 'value', targetRef: REFERENCE };
const OBJECT = { apiVersion: 'value', kind: 'value', metadata: METADATA } as const;

const FIELDS: Readonly<Record<PatchedKind, Fields>> = {
  Endpoints: {
    ...OBJECT,
    subsets: {
      '*': { addresses: { '*': ADDRESS }, notReadyAddresses: { '*': ADDRESS }, ports: { '*': PORT } },
    },
  },
  EndpointSlice: {
    ...OBJECT,
    addressType: 'value',
    endpoints: {
      '*': {
        addresses: { '*': 'value' },
        conditions: { ready: 'value', serving: 'value', terminating: 'value' },
        deprecatedTopology: { '*': 'value' },
        hints: 'any',
        hostname: 'value',
        nodeName: 'value',
        targetRef: REFERENCE,
        zone: 'value',
      },
    },
    ports: { '*': PORT },
  },
};

/** Why a path cannot match an object of this kind; undefined when it can. */
export function unmatchable(
  text: string,
  segments: readonly Segment[],
  kind: PatchedKind,
): { readonly message: string; readonly offset: number } | undefined {
  if (text.startsWith('/')) {
    const message = 'this looks like a JSON Pointer, which no path is; write metadata.annotations["key"]';
    return { message, offset: 0 };
  }
  let fields: Fields = FIELDS[kind];
  let above = '';
  for (const segment of segments) {
    if (fields === 'any') return undefined;
    const name = segment.kind === 'key' ? segment.key : '';
    const where = above === '' ? `${kind === 'Endpoints' ? 'an Endpoints' : 'an EndpointSlice'}` : above;
    const offset = Math.max(0, name === '' ? 0 : text.lastIndexOf(name));
    if (fields === 'value') return { message: `never matches: ${where} has no fields`, offset };
    const next: Fields | undefined = fieldOf(fields, segment);
    if (next === undefined) {
      const near = nearestWord(
        name,
        Object.keys(fields).filter((field) => field !== '*'),
      );
      const hint = near === undefined ? '' : `, did you mean "${near}"?`;
      const what = name === '' ? 'elements' : `field ${JSON.stringify(name)}`;
      return { message: `never matches: ${where} has no ${what}${hint}`, offset };
    }
    if (segment.kind === 'wildcard' && fields['*'] === undefined) return undefined;
    fields = next;
    above = segment.kind === 'key' && !/^\d+$/.test(name) ? name : above;
  }
  return undefined;
}

/** Undefined: no member that the segment names. */
function fieldOf(fields: { readonly [field: string]: Fields }, segment: Segment): Fields | undefined {
  const elements = Object.hasOwn(fields, '*') ? fields['*'] : undefined;
  if (segment.kind === 'key')
    return elements ?? (Object.hasOwn(fields, segment.key) ? fields[segment.key] : undefined);
  if (segment.kind === 'index') return elements;
  return elements ?? 'any';
}
