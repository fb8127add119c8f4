/** The form of the response that a client requests with `Accept`. */

import { notAcceptable } from '../status.ts';

export interface ResponseForm {
  readonly format: 'json' | 'yaml';
  /** `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`, `APIGroupDiscoveryList`, or `''` for the object itself. */
  readonly as: string;
  readonly version: string;
  readonly group: string;
}

/** A transformation that a handler offers. */
export interface OfferedForm {
  readonly as: string;
  readonly group: string;
  readonly versions: readonly string[];
}

const PLAIN: ResponseForm = { format: 'json', as: '', version: '', group: '' };

const ACCEPTED = ['application/json', 'application/yaml'];

/** A watch is lines of JSON. Throws 406 when the client does not accept JSON. */
export function negotiateWatch(accept: string | undefined, offered: readonly OfferedForm[]): ResponseForm {
  const form = negotiate(accept, offered);
  if (form.format !== 'json') throw notAcceptable(['application/json;stream=watch']);
  return form;
}

/** `meta.k8s.io/v1`: the apiVersion of a form that is not the object itself. */
export function metaVersion({ group, version }: ResponseForm): string {
  return `${group}/${version}`;
}

/** The most preferred form of the header that is offered; throws 406 when there is none. Without a header: JSON. */
export function negotiate(accept: string | undefined, offered: readonly OfferedForm[] = []): ResponseForm {
  if (accept === undefined || accept.trim() === '') return PLAIN;
  for (const { type, parameters } of clausesOf(accept)) {
    const format = formatOf(type);
    if (!format) continue;
    const as = parameters['as'] ?? '';
    const form = { format, as, version: parameters['v'] ?? '', group: parameters['g'] ?? '' };
    if (as === '') return form;
    const isOffered = offered.some(
      (offer) => offer.as === as && offer.group === form.group && offer.versions.includes(form.version),
    );
    if (isOffered) return form;
  }
  throw notAcceptable(ACCEPTED);
}

interface Clause {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The clauses of a header, in descending order of `q`. */
function clausesOf(accept: string): Clause[] {
  const clauses = accept.split(',').map((clause): Clause => {
    const [type = '', ...pairs] = clause.split(';').map((part) => part.trim());
    return {
      type,
      parameters: Object.fromEntries(pairs.map((part) => part.split('=', 2) as [string, string])),
    }; // two parts
  });
  return clauses.sort((a, b) => weightOf(b) - weightOf(a));
}

function weightOf({ parameters }: Clause): number {
  const weight = Number(parameters['q'] ?? 1);
  return Number.isNaN(weight) ? 1 : weight;
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  switch (type) {
    case 'application/json':
    case 'application/*':
    case '*/*':
      return 'json';
    case 'application/yaml':
      return 'yaml';
    default:
      return undefined;
  }
}
