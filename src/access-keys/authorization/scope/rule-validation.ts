/**
 * Validation of a deprecated rule of a scope. Messages and most checks are those of Kubernetes for the rules of an audit policy
 * (k8s.io/apiserver/pkg/apis/audit/validation), and stricter where a rule can only be a mistake, because here it is a permission.
 */

import {
  invalidValue,
  requiredValue,
  unsupportedValue,
  type FieldError,
} from '../../../apiserver/field-error.ts';
import { listField, objectList, text } from '../../../apiserver/metadata.ts';
import { subdomainProblem } from '../../../kube/names.ts';
import type { JsonObject } from '../../../base/json.ts';
import { ANY, nameProblem } from './scope-names.ts';
import { TARGET_KINDS } from '../target.ts';

const URL_LENGTH_MAX = 2_048;

export function validateRule(rule: JsonObject, path: string): FieldError[] {
  return [
    ...texts(rule, 'verbs').flatMap((verb, index) => verbErrors(verb, `${path}.verbs[${index}]`)),
    ...objectList(rule, 'resources').flatMap((entry, index) =>
      resourceErrors(entry, `${path}.resources[${index}]`),
    ),
    ...resourceNameErrors(rule, path),
    ...texts(rule, 'namespaces').flatMap((name, index) =>
      name === '' ? [] : plainNameErrors(name, `${path}.namespaces[${index}]`),
    ),
    ...urlErrors(rule, `${path}.nonResourceURLs`),
    ...texts(rule, 'requestTargets').flatMap((target, index) =>
      (TARGET_KINDS as readonly string[]).includes(target)
        ? []
        : [unsupportedValue(`${path}.requestTargets[${index}]`, target, TARGET_KINDS)],
    ),
    ...clusterErrors(rule, path),
  ];
}

function verbErrors(verb: string, path: string): FieldError[] {
  if (verb === '') return [requiredValue(path)];
  // In an audit policy "*" is a verb of that name, which never matches.
  if (verb === ANY) return [invalidValue(path, verb, 'leave the list empty to match every verb')];
  return plainNameErrors(verb, path);
}

function resourceErrors(entry: JsonObject, path: string): FieldError[] {
  const group = text(entry, 'group');
  const wrong = group === '' ? undefined : subdomainProblem(group);
  const errors = wrong ? [invalidValue(`${path}.group`, group, wrong)] : [];
  const resources = texts(entry, 'resources');
  const names = texts(entry, 'resourceNames');
  if (names.length > 0 && resources.length === 0) {
    errors.push(
      invalidValue(`${path}.resourceNames`, names, 'using resourceNames requires at least one resource'),
    );
  }
  errors.push(...instanceErrors(names, `${path}.resourceNames`));
  const shapes = resources.flatMap((resource, index) =>
    resourceShapeErrors(resource, `${path}.resources[${index}]`),
  );
  return [...errors, ...shapes, ...(shapes.length > 0 ? [] : overlapErrors(resources, `${path}.resources`))];
}

function resourceShapeErrors(resource: string, path: string): FieldError[] {
  if (resource === '') return [requiredValue(path)];
  if (resource === '*/*') return [invalidValue(path, resource, 'use "*" for all resources and subresources')];
  const parts = resource.split('/');
  const isPart = (part: string): boolean => part === ANY || (part !== '' && nameProblem(part) === undefined);
  if (parts.length <= 2 && parts.every(isPart)) return [];
  const detail = 'must be a resource, <resource>/<subresource>, "*", <resource>/* or */<subresource>';
  return [invalidValue(path, resource, detail)];
}

/** No entry may be contained in an entry with a wildcard, in any order. */
function overlapErrors(resources: readonly string[], path: string): FieldError[] {
  const all = new Set(resources);
  return resources.flatMap((resource, index) => {
    const [name = '', subresource] = resource.split('/');
    const covering = [
      ...(resource === ANY ? [] : [ANY]),
      ...(subresource === undefined || subresource === ANY ? [] : [`${name}/*`]),
      ...(subresource === undefined || name === ANY ? [] : [`*/${subresource}`]),
    ];
    // `a/*` and `*/b` have a/b in common.
    if (subresource === ANY) covering.push(...resources.filter((other) => other.startsWith('*/')));
    const found = covering.find((wildcard) => wildcard !== resource && all.has(wildcard));
    if (found === undefined) return [];
    return [
      invalidValue(`${path}[${index}]`, resource, `if '${found}' is present, must not specify ${resource}`),
    ];
  });
}

function resourceNameErrors(rule: JsonObject, path: string): FieldError[] {
  const names = texts(rule, 'resourceNames');
  if (names.length === 0) return [];
  const entries = objectList(rule, 'resources');
  if (entries.length > 0 && entries.every((entry) => listField(entry, 'resources').length > 0)) {
    return instanceErrors(names, `${path}.resourceNames`);
  }
  const detail = 'using resourceNames requires at least one resource';
  return [invalidValue(`${path}.resourceNames`, names, detail)];
}

function instanceErrors(names: readonly string[], path: string): FieldError[] {
  return names.flatMap((name, index) =>
    name === '' ? [requiredValue(`${path}[${index}]`)] : plainNameErrors(name, `${path}[${index}]`),
  );
}

/** Names that are compared literally: a wildcard would silently match nothing. */
function plainNameErrors(name: string, path: string): FieldError[] {
  const problem = name === ANY ? 'wildcards are not allowed: leave the list empty' : nameProblem(name);
  return problem === undefined ? [] : [invalidValue(path, name, problem)];
}

function urlErrors(rule: JsonObject, path: string): FieldError[] {
  const urls = texts(rule, 'nonResourceURLs');
  const isMixed = listField(rule, 'resources').length > 0 || listField(rule, 'namespaces').length > 0;
  const mixed = 'rules cannot apply to both regular resources and non-resource URLs';
  return [
    ...(urls.length > 0 && isMixed ? [invalidValue(path, urls, mixed)] : []),
    ...urls.flatMap((url, index) => {
      const problem = urlProblem(url);
      return problem === undefined ? [] : [invalidValue(`${path}[${index}]`, url, problem)];
    }),
  ];
}

function urlProblem(url: string): string | undefined {
  if (url === ANY) return undefined;
  if (!url.startsWith('/')) return "non-resource URL rules must begin with a '/' character";
  if (url.slice(0, -1).includes(ANY)) {
    return "non-resource URL wildcards '*' must be the final character of the rule";
  }
  if (url.endsWith(ANY) && !url.endsWith('/*')) return "a wildcard '*' must be the whole final path step";
  if (url.length > URL_LENGTH_MAX) return `must be no more than ${URL_LENGTH_MAX} characters`;
  return /[\p{Cc}\s]/u.test(url) ? 'must not contain spaces or control characters' : undefined;
}

function clusterErrors(rule: JsonObject, path: string): FieldError[] {
  const cluster = text(rule, 'cluster');
  const errors = cluster === '' ? [] : plainNameErrors(cluster, `${path}.cluster`);
  const entries = objectList(rule, 'virtualClusters');
  if (cluster !== '' && entries.length > 0) errors.push(...unreachableErrors(rule, path));
  for (const [index, entry] of entries.entries()) {
    for (const field of ['name', 'namespace']) {
      const name = text(entry, field);
      if (name !== '') errors.push(...plainNameErrors(name, `${path}.virtualClusters[${index}].${field}`));
    }
  }
  return errors;
}

/** A rule with a cluster and virtual clusters matches requests to either: both kinds must be among the targets of the rule. */
function unreachableErrors(rule: JsonObject, path: string): FieldError[] {
  const targets = texts(rule, 'requestTargets');
  if (targets.length === 0) return [];
  const missing = ['Cluster', 'ProjectVirtualCluster'].filter((kind) => !targets.includes(kind));
  return missing.map((kind) => {
    const field = kind === 'Cluster' ? 'cluster' : 'virtualClusters';
    return invalidValue(`${path}.requestTargets`, targets, `must contain ${kind}, or ${field} never matches`);
  });
}

function texts(object: JsonObject, field: string): string[] {
  return listField(object, field).filter((item) => typeof item === 'string');
}
