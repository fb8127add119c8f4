/** The API that a request is for, by the prefix of its URL. */

import type { ServerPath } from '../../apiserver/request/request-info.ts';
import type { RequestTarget } from '../types.ts';

export const TARGET_KINDS = ['Management', 'Cluster', 'ProjectSpace', 'ProjectVirtualCluster'] as const;

const MANAGEMENT: RequestTarget = { kind: 'Management' };
/** The prefix of this API in the layout of the platform. */
const MANAGEMENT_PREFIX = '/kubernetes/management';
/** Segments of `/kubernetes/cluster/a` and of `/kubernetes/project/a/space/b`, including the empty one before the first slash. */
const PREFIX_SEGMENTS = [4, 6];

/**
 * Splits a URL path into the prefix of a target and the path below it. The prefix of this API is `''`, with or without
 * `/kubernetes/management`. Undefined: the path is below `/kubernetes` and names no target.
 */
export function splitPath(path: string): ServerPath | undefined {
  if (path !== '/kubernetes' && !path.startsWith('/kubernetes/')) return { prefix: '', path };
  if (path === MANAGEMENT_PREFIX || path.startsWith(`${MANAGEMENT_PREFIX}/`)) {
    return { prefix: '', path: path.slice(MANAGEMENT_PREFIX.length) || '/' };
  }
  const segments = path.split('/');
  for (const count of PREFIX_SEGMENTS) {
    const prefix = segments.slice(0, count).join('/');
    if (segments.length < count || !targetOf(prefix)) continue;
    return { prefix, path: `/${segments.slice(count).join('/')}` };
  }
  return undefined;
}

/** The target that a prefix names, its segments decoded; undefined: none. */
export function targetOf(prefix: string): RequestTarget | undefined {
  if (prefix === '') return MANAGEMENT;
  const segments = decoded(prefix);
  if (segments?.[0] !== 'kubernetes' || segments.includes('')) return undefined;
  const [, kind, name = '', part, inner = ''] = segments;
  if (kind === 'cluster' && segments.length === 3) return { kind: 'Cluster', cluster: name };
  if (kind !== 'project' || segments.length !== 5) return undefined;
  if (part === 'space') return { kind: 'ProjectSpace', project: name, space: inner };
  if (part === 'virtualcluster')
    return { kind: 'ProjectVirtualCluster', project: name, virtualCluster: inner };
  return undefined;
}

/** The target in messages: `cluster "a"`. */
export function targetText(target: RequestTarget): string {
  const quote = (name: string): string => JSON.stringify(name);
  switch (target.kind) {
    case 'Management':
      return 'the management API';
    case 'Cluster':
      return `cluster ${quote(target.cluster)}`;
    case 'ProjectSpace':
      return `space ${quote(target.space)} of project ${quote(target.project)}`;
    case 'ProjectVirtualCluster':
      return `virtual cluster ${quote(target.virtualCluster)} of project ${quote(target.project)}`;
  }
}

function decoded(prefix: string): string[] | undefined {
  try {
    return prefix.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
