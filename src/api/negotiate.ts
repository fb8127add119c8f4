/** What form of answer a client asks for with `Accept`. */

import { notAcceptable } from './status.ts';

export interface AnswerForm {
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

const PLAIN: AnswerForm = { format: 'json', as: '', version: '', group: '' };

const ACCEPTED = ['application/json', 'application/yaml'];

/** The first form in the header that is offered; throws 406 when there is none. No header: JSON. */
export function negotiate(accept: string | undefined, offered: readonly OfferedForm[] = []): AnswerForm {
  if (accept === undefined || accept.trim() === '') return PLAIN;
  for (const clause of accept.split(',')) {
    const [type = '', ...parameters] = clause.split(';').map((part) => part.trim());
    const format = formatOf(type);
    if (!format) continue;
    const wanted = Object.fromEntries(parameters.map((part) => part.split('=', 2) as [string, string])); // two parts
    const as = wanted['as'] ?? '';
    const form = { format, as, version: wanted['v'] ?? '', group: wanted['g'] ?? '' };
    if (as === '') return form;
    const isOffered = offered.some(
      (offer) => offer.as === as && offer.group === form.group && offer.versions.includes(form.version),
    );
    if (isOffered) return form;
  }
  throw notAcceptable(ACCEPTED);
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
