/** The exact text of each warning about settings. Warnings about patches: `test/cli/patch-warnings.test.ts`. */

import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../../src/cli/config/parse.ts';
import { brief, problemsIn } from '../../cli/config/setup.ts';

const NAME = 'endpointSyncer: {name: vc}';

describe('warnings', () => {
  test.each([
    [
      `${NAME}\nsync: {toHost: {endpoints: {enabled: false}}}`,
      '2:38 sync.toHost.endpoints.enabled (warning) sync.toHost.services.enabled is true, but Services without a selector have no addresses on the host without their Endpoints',
    ],
    [
      `${NAME}\nsync: {toHost: {services: {enabled: true}}}`,
      '2:37 sync.toHost.services.enabled (warning) this has no effect: endpointSyncer.services is vcluster by default, so this program copies no Services; set it to sync if no vCluster syncs them, else to vcluster',
    ],
    [
      'endpointSyncer: {name: vc, onHostDelete: deleteVirtual}',
      '1:42 endpointSyncer.onHostDelete (warning) what else deletes copies, such as a garbage collector of the host or another replica without leaderElection, then deletes the objects of the virtual cluster, too',
    ],
    [
      'endpointSyncer: {name: my-vclustr, virtual: {secret: vc-my-vcluster}}',
      '1:24 endpointSyncer.name (warning) the Secret vc-my-vcluster is that of the vCluster "my-vcluster", and the name here is "my-vclustr": the copies of that vCluster are not found under it, and are made a second time; set it to my-vcluster, or correct endpointSyncer.virtual.secret',
    ],
    [
      'endpointSyncer: {name: vc, services: {mode: sync, allow: [loadBalancerIP, externalIPs]}}',
      '1:75 endpointSyncer.services.allow[1] (warning) externalIPs of Services are deprecated since Kubernetes 1.36, and a host may not implement them any more: use type LoadBalancer',
    ],
    [
      `${NAME}\nsync: {toHost: {namespaces: {mappingsOnly: true}}}`,
      '2:17 sync.toHost.namespaces (warning) has no effect while sync.toHost.namespaces.enabled is false',
    ],
    [
      'endpointSyncer: {name: vc, owner: {kind: Pod, name: a}}\nexperimental: {multiNamespaceMode: {enabled: true}}',
      '1:28 endpointSyncer.owner (warning) has no effect with several host namespaces: an owner must be in the namespace of its copies',
    ],
    [
      `${NAME}\nsync: {toHost: {endpoint: {}}}`,
      '2:17 sync.toHost.endpoint (warning) this key is not read: did you mean "endpoints"?',
    ],
    [`${NAME}\nsync: {tohost: {}}`, '2:8 sync.tohost (warning) this key is not read: did you mean "toHost"?'],
    [
      `${NAME}\nendpointSyncr: {}`,
      '2:1 endpointSyncr (warning) this key is not read: did you mean "endpointSyncer"?',
    ],
    [`${NAME}\ntoHost: {}`, '2:1 toHost (warning) this key is not read: it belongs below sync'],
    [
      `${NAME}\nsync: {endpoints: {}}`,
      '2:8 sync.endpoints (warning) this key is not read: it belongs below sync.toHost',
    ],
    [
      `${NAME}\nmanagementApi: {store: {driver: memory}}`,
      '2:33 managementApi.store.driver (warning) all keys are lost when the process exits; use it for tests only',
    ],
    [
      `${NAME}\nmanagementApi: {bindAddress: ":8443"}`,
      '2:30 managementApi.bindAddress (warning) clients cannot connect to this address, and it is the default issuer of tokens: set managementApi.issuer to the URL at which clusters reach this API',
    ],
    [
      `${NAME}\nmanagementApi: {maxTtl: 1h, tokenTtl: {default: 2h}}`,
      '2:49 managementApi.tokenTtl.default (warning) default (2h) is longer than managementApi.maxTtl (1h): a token expires with its key at the latest',
    ],
    [
      `${NAME}\nmanagementApi: {enabled: true, store: {driver: kubernetes}}`,
      "2:48 managementApi.store.driver (warning) the Secrets of the key store are in the virtual cluster's host namespace, where references of tenants can name them: set managementApi.store.namespace to a separate namespace",
    ],
    ['endpointSyncer: {name: !x vc}', '1:24  (warning) unresolved tag: !x: the tag is ignored'],
    [`${NAME}\n---\n{a: 1}`, '3:1  (warning) a second document: only the first one is read'],
  ])('%j', (text, warning) => {
    expect(problemsIn(text)).toEqual([warning]);
  });

  test.each(['vcluster', 'sync', '{mode: vcluster}'])(
    'a file that says who syncs Services has none: %s',
    (services) => {
      const own = `endpointSyncer: {name: vc, services: ${services}}`;
      expect(problemsIn(`${own}\nsync: {toHost: {services: {enabled: true}}}`)).toEqual([]);
    },
  );

  test("Services in vCluster's values are vCluster's", () => {
    const options = { env: {}, flags: {} };
    const enabled =
      'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}, services: {enabled: true}}}';
    const own = {
      text: `${NAME}\nsync: {toHost: {services: {enabled: true}, endpoints: {enabled: true}}}`,
      file: 'f.yaml',
    };
    expect(parseConfig(own, options, { text: enabled, file: 'v.yaml' }).problems).toEqual([]);
  });

  test.each([
    [
      '{}',
      "1:1 sync.toHost.endpoints.enabled (warning) vCluster syncs Endpoints too: set it to false in vCluster's values",
    ],
    [
      'sync: {toHost: {endpoints: {enabled: false, patches: [{path: metadata.labels.a, labels: {}}]}}}',
      "1:8 sync.toHost.endpointSlices.enabled (warning) vCluster copies EndpointSlices without the patches, and the mirroring controller of the host updates the same objects: set it to false in vCluster's values",
    ],
  ])("in vCluster's values %j", (vcluster, warning) => {
    const options = { env: {}, flags: {} };
    const own = { text: `${NAME}\nsync: {toHost: {endpointSlices: {enabled: false}}}`, file: 'f.yaml' };
    const { problems } = parseConfig(own, options, { text: vcluster, file: 'v.yaml' });
    expect(problems.map(brief)).toEqual([warning]);
  });
});

test('a misspelt section is the one error, not what is missing because of it', () => {
  expect(problemsIn('endpointsyncer: {name: vc}')).toEqual([
    '1:1 endpointsyncer this key is not read: did you mean "endpointSyncer"?',
  ]);
});
