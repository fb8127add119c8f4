/** What is wrong with the type, the word or the key of a field, and how to correct it. */

import { describe, expect, test } from 'vitest';
import { problemsIn, withSyncer } from '../cli/config/setup.ts';

describe('a field', () => {
  test.each([
    ['workers: ten', '3:12 endpointSyncer.workers must be a whole number, found "ten"'],
    [
      'workers: "10"',
      '3:12 endpointSyncer.workers must be a whole number, found "10": write 10 without quotes',
    ],
    ['workers: 1.5', '3:12 endpointSyncer.workers must be a whole number, found 1.5'],
    ['workers: [1]', '3:12 endpointSyncer.workers must be a whole number, found a list'],
    ['workers: 0', '3:12 endpointSyncer.workers must be at least 1, found 0'],
    [
      'requireService: "on"',
      '3:19 endpointSyncer.requireService must be true or false, found "on": write true without quotes',
    ],
    [
      'onHostDelete: recrate',
      '3:17 endpointSyncer.onHostDelete must be one of recreate, deleteVirtual, found "recrate", did you mean "recreate"?',
    ],
    ['onHostDelete: 1', '3:17 endpointSyncer.onHostDelete must be one of recreate, deleteVirtual, found 1'],
    [
      'host: ns',
      '3:9 endpointSyncer.host must be a mapping, found "ns": it has the keys kubeconfig, context, namespace',
    ],
    ['host: {namespace: 1}', '3:21 endpointSyncer.host.namespace must be text, found 1: put it in quotes'],
    ['services: both', expect.stringMatching(/3:13 endpointSyncer.services must be one of vcluster, sync/u)],
    ['services: {allow: []}', '3:3 endpointSyncer.services.mode is required: one of vcluster, sync'],
    [
      'services: {mode: snyc}',
      '3:20 endpointSyncer.services.mode must be one of vcluster, sync, found "snyc", did you mean "sync"?',
    ],
    [
      'services: {mode: sync, allow: [externalIps]}',
      expect.stringMatching(
        /3:34 endpointSyncer.services.allow\[0\] must be one of externalIPs, loadBalancerIP/u,
      ),
    ],
    [
      'services: {mode: sync, alow: []}',
      '3:26 endpointSyncer.services.alow unknown key "alow", did you mean "allow"?',
    ],
    [
      'references: {nameing: long}',
      '3:16 endpointSyncer.references.nameing unknown key "nameing", did you mean "naming"?',
    ],
  ])('%s', (lines, problem) => {
    expect(problemsIn(withSyncer(lines))).toEqual([problem]);
  });
});
