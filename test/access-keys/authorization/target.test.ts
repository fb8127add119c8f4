/** Targets of URL prefixes. */

import { describe, expect, test } from 'vitest';
import { splitPath, targetOf } from '../../../src/access-keys/authorization/grants.ts';

describe('paths', () => {
  test.each<[string, { prefix: string; path: string } | undefined]>([
    ['/apis', { prefix: '', path: '/apis' }],
    ['/', { prefix: '', path: '/' }],
    ['/kubernetesx/a', { prefix: '', path: '/kubernetesx/a' }],
    ['/kubernetes/management', { prefix: '', path: '/' }],
    ['/kubernetes/management/', { prefix: '', path: '/' }],
    ['/kubernetes/management/apis/x', { prefix: '', path: '/apis/x' }],
    ['/kubernetes/managementx/apis', undefined],
    ['/kubernetes', undefined],
    ['/kubernetes/', undefined],
    ['/kubernetes/cluster', undefined],
    ['/kubernetes/cluster/', undefined],
    ['/kubernetes/cluster//apis', undefined],
    ['/kubernetes/cluster/a', { prefix: '/kubernetes/cluster/a', path: '/' }],
    ['/kubernetes/cluster/a/', { prefix: '/kubernetes/cluster/a', path: '/' }],
    ['/kubernetes/cluster/a/apis/x', { prefix: '/kubernetes/cluster/a', path: '/apis/x' }],
    ['/kubernetes/project/a', undefined],
    ['/kubernetes/project/a/space', undefined],
    ['/kubernetes/project/a/space/', undefined],
    ['/kubernetes/project/a/pod/b/apis', undefined],
    ['/kubernetes/project/a/space/b/api/v1', { prefix: '/kubernetes/project/a/space/b', path: '/api/v1' }],
    [
      '/kubernetes/project/a/virtualcluster/v',
      { prefix: '/kubernetes/project/a/virtualcluster/v', path: '/' },
    ],
    ['/kubernetes/cluster/%zz/apis', undefined],
  ])('%s', (path, expected) => {
    expect(splitPath(path)).toEqual(expected);
  });
});

test.each([
  ['', { kind: 'Management' }],
  ['/kubernetes/cluster/a', { kind: 'Cluster', cluster: 'a' }],
  ['/kubernetes/cluster/a%20b', { kind: 'Cluster', cluster: 'a b' }],
  ['/kubernetes/project/a/space/s', { kind: 'ProjectSpace', project: 'a', space: 's' }],
  [
    '/kubernetes/project/a/virtualcluster/v',
    { kind: 'ProjectVirtualCluster', project: 'a', virtualCluster: 'v' },
  ],
  ['/kubernetes/cluster/a/b', undefined],
  ['/other/cluster/a', undefined],
])('the prefix %s', (prefix, target) => {
  expect(targetOf(prefix)).toEqual(target);
});
