/** Fields with names, labels and annotations of Kubernetes objects. */

import * as z from 'zod';
import { optionalMatch, wanted } from '../../config-file/schema-fields.ts';
import { DNS_LABEL_PATTERN, DNS_LABEL_RULE, labelKeyProblem, labelValueProblem } from '../../kube/names.ts';

const DNS_LABEL = new RegExp(`^${DNS_LABEL_PATTERN}$`, 'u');
const SUBDOMAIN_OR_EMPTY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/u;
/** A required DNS label; `hint` says how to set it. */
export function requiredLabel(description: string, hint: string) {
  return z
    .string({ error: (issue) => (issue.input === undefined ? `is required: ${hint}` : undefined) })
    .regex(DNS_LABEL, wanted(DNS_LABEL_RULE))
    .meta({ description });
}

const LABEL_KEY = String.raw`([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`;
const LABEL_REQUIREMENT_OR_EMPTY = new RegExp(
  `^(${LABEL_KEY}(=([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?)?)?$`,
  'u',
);

const KEY_PATTERN = new RegExp(`^(${LABEL_KEY}|[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/\\*)$`, 'u');

/** The key of a label or an annotation, or PREFIX/* for all keys with a prefix. */
export const keyPattern = z
  .string()
  .regex(KEY_PATTERN, wanted('a key or PREFIX/* such as example.com/owner or example.com/*'));

/** What an API server would reject in a LabelSelector. */
function accepted(problemOf: (value: string) => string | undefined) {
  return z.string().superRefine((value, context) => {
    const problem = problemOf(value);
    if (problem !== undefined) context.addIssue(problem);
  });
}

export const labelKey = accepted(labelKeyProblem);
export const labelValue = accepted(labelValueProblem);

/** A label by KEY or KEY=VALUE, or '' for none. */
export function labelRequirement(description: string) {
  const what = 'a label, KEY or KEY=VALUE such as example.com/import=true';
  return optionalMatch(description, LABEL_REQUIREMENT_OR_EMPTY, what);
}

/** The name of a namespaced Kubernetes object, or '' for none. */
export function objectName(description: string) {
  const what = 'a Kubernetes name (lower-case letters, digits, "-" and ".")';
  return optionalMatch(description, SUBDOMAIN_OR_EMPTY, what);
}
