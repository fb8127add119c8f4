/** Grants: a parsed scope, as patterns of requests and of targets. */

import type { RequestTarget } from '../../types.ts';
import { ANY } from './scope-names.ts';

/** A target whose names may be `*`. */
export type TargetPattern = RequestTarget;

/** A pattern of requests; an undefined field matches everything. */
export interface RequestPattern {
  /** `any`: both resources and paths. */
  readonly form: 'any' | 'resource' | 'path';
  readonly verbs: ReadonlySet<string> | undefined;
  readonly group: string | undefined;
  /** `*`, `r`, `r/s`, `r/*` or `*``/s`. */
  readonly resource: string;
  readonly namespaces: ReadonlySet<string> | undefined;
  readonly names: ReadonlySet<string> | undefined;
  /** `*`, a path, or a prefix of paths followed by `/*`. */
  readonly url: string;
}

export interface Grant {
  /** The entry of the scope, `projects[0]`. */
  readonly place: string;
  readonly targets: readonly TargetPattern[];
  readonly requests: RequestPattern;
}

export const EVERYTHING: RequestPattern = {
  form: 'any',
  verbs: undefined,
  group: undefined,
  resource: ANY,
  namespaces: undefined,
  names: undefined,
  url: ANY,
};

/** Whether `outer` contains every target of `inner`. A target is a pattern without wildcards. */
export function holdsTarget(outer: TargetPattern, inner: TargetPattern): boolean {
  switch (outer.kind) {
    case 'Management':
      return inner.kind === 'Management';
    case 'Cluster':
      return inner.kind === 'Cluster' && holdsName(outer.cluster, inner.cluster);
    case 'ProjectSpace':
      return (
        inner.kind === 'ProjectSpace' &&
        holdsName(outer.project, inner.project) &&
        holdsName(outer.space, inner.space)
      );
    case 'ProjectVirtualCluster':
      return (
        inner.kind === 'ProjectVirtualCluster' &&
        holdsName(outer.project, inner.project) &&
        holdsName(outer.virtualCluster, inner.virtualCluster)
      );
  }
}

function holdsName(outer: string, inner: string): boolean {
  return outer === ANY || outer === inner;
}

/** Whether `outer` contains `inner`; either may have wildcards. Subresources as `pods/log`. */
export function holdsResource(outer: string, inner: string): boolean {
  if (outer === ANY || outer === inner) return true;
  const [resource = '', subresource] = outer.split('/');
  const [innerResource = '', innerSubresource] = inner.split('/');
  if (subresource === undefined || innerSubresource === undefined) return false;
  if (subresource === ANY) return resource === innerResource;
  return resource === ANY && subresource === innerSubresource;
}

export function holdsUrl(outer: string, inner: string): boolean {
  if (outer === ANY || outer === inner) return true;
  return outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1));
}
