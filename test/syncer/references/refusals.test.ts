/** Which objects are not imported, by their metadata and by their content. */

import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  refusalOfContent,
  refusalOfSource,
  refusalOfVirtual,
  refusalRules,
  withoutProgramKeys,
} from '../../../src/syncer/references/refusals.ts';

const SECRET = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', isNamespaced: true };
const CONFIG_MAP = { ...SECRET, kind: 'ConfigMap', plural: 'configmaps' };
const GADGET = { ...SECRET, group: 'example.com', kind: 'Gadget', plural: 'gadgets' };

function rules(references: { refuseSecrets?: string[]; onlyLabelled?: string } = {}) {
  return refusalRules({
    name: 'demo',
    virtual: { kubeconfig: '', context: '', secret: 'the-kubeconfig', server: '', adopt: false },
    references: { naming: 'short', refuseSecrets: [], onlyLabelled: '', ...references },
  });
}

function named(name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name, namespace: 'host', uid: 's1', ...metadata } };
}

const labelled = (key: string, value: string): KubeObject => named('tls', { labels: { [key]: value } });

describe('a Secret of the host', () => {
  test.each<[string, KubeObject, string]>([
    ['a copy of this virtual cluster', labelled('vcluster.loft.sh/managed-by', 'demo'), 'it is the copy of'],
    [
      'a copy without a marker',
      named('tls', { annotations: { 'vcluster.loft.sh/object-name': 'x' } }),
      'it is the copy of',
    ],
    [
      'the token of a service account',
      named('tls', { annotations: { 'kubernetes.io/service-account.name': 'sa' } }),
      'it is the token of a service account',
    ],
    ['the configured kubeconfig', named('the-kubeconfig'), 'it is the kubeconfig of the virtual cluster'],
    ["vCluster's own kubeconfig", named('vc-vc'), 'it holds keys of a virtual cluster'],
    ["a neighbour's configuration", named('vc-config-other'), 'it holds keys of a virtual cluster'],
    ['certificates of the control plane', named('demo-certs'), 'it holds keys of a virtual cluster'],
    ['a Helm release', named('sh.helm.release.v1.x.v1'), 'it is the record of a Helm release'],
    ['a bootstrap token', named('bootstrap-token-abc'), 'it is a bootstrap token'],
    ['the key of the platform', named('vcluster-platform-api-key'), 'it holds a platform key'],
    ['an object of the key store', named('endpoint-syncer.key.x'), 'it is a Secret of the key store'],
  ])('is not imported if it is %s', (_, object, why) => {
    expect(refusalOfSource(object, SECRET, rules())).toMatch(why);
  });

  test.each(['shop-certs', 'my-vc-vc', 'other-token', 'demo-certs-2', 'helm', 'bootstrap'])(
    'may be named %s',
    (name) => {
      expect(refusalOfSource(named(name), SECRET, rules())).toBeUndefined();
    },
  );

  test.each(['vc-vc', 'demo-certs', 'demo-token', 'sh.helm.release.v1.x.v1', 'the-kubeconfig'])(
    'may not be named %s, another object may',
    (name) => {
      expect(refusalOfSource(named(name), SECRET, rules())).toBeDefined();
      expect(refusalOfSource(named(name), GADGET, rules())).toBeUndefined();
    },
  );

  test('a ConfigMap of a virtual cluster is not imported either', () => {
    expect(refusalOfSource(named('vc-coredns'), CONFIG_MAP, rules())).toMatch('belongs to a virtual cluster');
    expect(refusalOfSource(named('coredns'), CONFIG_MAP, rules())).toBeUndefined();
  });
});

describe('references.onlyLabelled', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['a', { a: '' }, true],
    ['a', { b: '' }, false],
    ['a=x', { a: 'x' }, true],
    ['a=x', { a: 'y' }, false],
    ['a=', { a: '' }, true],
    ['a=', { a: 'x' }, false],
    ['toString', {}, false],
  ])('%s: an object with the labels %j, allowed: %s', (onlyLabelled, labels, isAllowed) => {
    const refusal = refusalOfSource(named('tls', { labels }), GADGET, rules({ onlyLabelled }));
    expect(refusal === undefined).toBe(isAllowed);
  });
});

test.each<[string, KubeObject]>([
  ['in its name', named('my-db-root')],
  ['in its type', { ...named('tls'), type: 'example.com/db-root' }],
  ['in a key of its data', { ...named('tls'), data: { 'db-root': 'YQ==' } }],
])('a Secret with a text of references.refuseSecrets %s is not imported', (_, object) => {
  const refusing = rules({ refuseSecrets: ['*db-root'] });
  const refusal = refusalOfSource(object, SECRET, refusing) ?? refusalOfContent(object, SECRET, refusing);
  expect(refusal).toBe('references.refuseSecrets has *db-root');
  expect(
    refusalOfSource(object, SECRET, rules()) ?? refusalOfContent(object, SECRET, rules()),
  ).toBeUndefined();
});

test.each<[string, KubeObject, boolean, boolean]>([
  ['argocd.argoproj.io/secret-type', labelled('argocd.argoproj.io/secret-type', 'cluster'), false, false],
  ['owner=helm', labelled('owner', 'helm'), false, false],
  ['owner of another value', labelled('owner', 'team'), true, true],
  ['a key below a prefix', labelled('sealedsecrets.bitnami.com/x', ''), false, false],
  ['grafana_dashboard, which only acts', labelled('grafana_dashboard', '1'), true, false],
])('a label of a program of the host: %s', (_, object, isImported, isExported) => {
  for (const resource of [SECRET, CONFIG_MAP]) {
    expect(refusalOfSource(object, resource, rules()) === undefined).toBe(isImported);
    expect(refusalOfVirtual(object, resource) === undefined).toBe(isExported);
  }
  expect(refusalOfVirtual(object, GADGET)).toBeUndefined();
});

test('a copy loses what programs of the host act on, and keeps the same key with another value', () => {
  const map = { 'app.kubernetes.io/managed-by': 'Helm', 'kapp.k14s.io/app': '1', kept: '1' };
  const { metadata } = withoutProgramKeys(named('tls', { labels: map, annotations: map }));
  expect([metadata.labels, metadata.annotations]).toEqual([{ kept: '1' }, { kept: '1' }]);
  const other = named('tls', { labels: { 'app.kubernetes.io/managed-by': 'me' } });
  expect(withoutProgramKeys(other)).toEqual(other);
});
