/** Which configuration changes a reload applies, and which need a restart. */

import { describe, expect, test } from 'vitest';
import { diffConfig, withLiveChanges } from '../../../src/syncer/config/config.ts';
import { validConfig } from '../../cli/config/setup.ts';

const BEFORE = 'endpointSyncer: {name: vc}\n';

describe('changes that a reload applies', () => {
  test.each([
    ['nothing', BEFORE, [], []],
    ['a comment and the order', '# x\nsync: {}\nendpointSyncer: {workers: 10, name: vc}\n', [], []],
    [
      'patches',
      `${BEFORE}sync: {toHost: {endpoints: {patches: [{path: a, expression: value}]}}}`,
      ['sync.toHost.endpoints.patches'],
      [],
    ],
    ['a kind', `${BEFORE}sync: {toHost: {secrets: {enabled: false}}}`, ['sync.toHost.secrets.enabled'], []],
    [
      'a custom resource',
      `${BEFORE}sync: {toHost: {customResources: {a.b: {enabled: true}}}}`,
      ['sync.toHost.customResources'],
      [],
    ],
    [
      'the namespace mode',
      `${BEFORE}experimental: {multiNamespaceMode: {enabled: true}}`,
      ['experimental.multiNamespaceMode'],
      [],
    ],
    ['the name', 'endpointSyncer: {name: other}', [], ['endpointSyncer.name']],
    [
      'what vCluster may do',
      'endpointSyncer: {name: vc, besideVcluster: force}',
      [],
      ['endpointSyncer.besideVcluster'],
    ],
    ['the same time in another unit', 'endpointSyncer: {name: vc, sandbox: {batchTimeout: 1000ms}}', [], []],
    [
      'the owner',
      'endpointSyncer: {name: vc, owner: {kind: Service, name: x}}',
      [],
      ['endpointSyncer.owner.name'],
    ],
    [
      'no owner',
      'endpointSyncer: {name: vc, owner: {kind: ""}}',
      [],
      ['endpointSyncer.owner.apiVersion', 'endpointSyncer.owner.kind'],
    ],
    [
      'limits',
      'endpointSyncer: {name: vc, sandbox: {memory: 1Gi, batchTimeout: 2s}, log: {level: debug}}',
      [],
      ['endpointSyncer.sandbox.batchTimeout', 'endpointSyncer.sandbox.memory', 'endpointSyncer.log.level'],
    ],
    [
      "vCluster's other sections",
      `${BEFORE}networking: {podCIDR: 10.0.0.0/8}\nmine: 1`,
      ['networking.podCIDR', 'mine'],
      [],
    ],
    [
      'some of each',
      'endpointSyncer: {name: vc, workers: 5}\nsync: {toHost: {endpoints: {enabled: false}}}',
      ['sync.toHost.endpoints.enabled'],
      ['endpointSyncer.workers'],
    ],
    [
      'what is selected',
      'endpointSyncer: {name: vc, workers: 2, selector: {matchLabels: {a: b}}, namespaces: {exclude: [c]}, metadata: {excludeLabels: [d]}}',
      [
        'endpointSyncer.metadata.excludeLabels',
        'endpointSyncer.selector.matchLabels.a',
        'endpointSyncer.namespaces.exclude',
      ],
      ['endpointSyncer.workers'],
    ],
  ])('%s', (_, after, live, restart) => {
    expect(diffConfig(validConfig(BEFORE), validConfig(after))).toEqual({ live, restart });
  });
});

test('a reload replaces what is live and keeps the rest', () => {
  const old = validConfig('endpointSyncer: {name: vc}\nnetworking: {podCIDR: a}');
  const next = validConfig(
    'endpointSyncer: {name: vc, workers: 5, selector: {matchLabels: {a: b}}, namespaces: {exclude: [c]}, metadata: {excludeLabels: [d]}}\nnetworking: {podCIDR: b}\nsync: {toHost: {endpoints: {patches: [{path: a, labels: {}}]}}}\n',
  );
  const running = withLiveChanges(old, next);
  expect([running.workers, running.sync.endpoints.patches]).toEqual([10, [{ path: 'a', labels: {} }]]);
  const { selector, namespaces, metadata } = next;
  expect(running).toMatchObject({ selector, namespaces, metadata });
  expect(running.vclusterValues).toEqual(next.vclusterValues);
  expect(diffConfig(running, next)).toEqual({ live: [], restart: ['endpointSyncer.workers'] });
  expect(old.vclusterValues).toEqual(
    validConfig('endpointSyncer: {name: vc}\nnetworking: {podCIDR: a}').vclusterValues,
  );
});
