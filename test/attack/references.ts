/**
 * A tenant who may write Endpoints inside the virtual cluster tries to read foreign objects of the host, or to cause actions on the host.
 * Each attempt causes an Event and no write.
 */

import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { KubeObject, StringMap } from '../../src/kube/object.ts';
import { MARKER } from '../scenarios/expected-copy.ts';
import { endpoints } from '../scenarios/objects.ts';
import {
  configMap,
  importedTo,
  KINDS_BY_DATA,
  named,
  NOTES,
  referencePatches,
  secret,
  short,
} from '../scenarios/reference-objects.ts';
import { sharedWorld } from '../scenarios/shared-world.ts';
import { expectRefused, refusalInLog } from './expect-refused.ts';
import { pair, type NewWorld } from '../scenarios/world.ts';

const KUBECONFIG = 'my-kubeconfig';

const CONNECTION = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1' } }],
  users: [{ name: 'u', user: { token: 't' } }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
};
const YAML_CONNECTION = stringify(CONNECTION);
const KUBECONFIGS = [
  ['as vCluster keeps it', 'config', YAML_CONNECTION],
  ['as many charts keep it', 'kubeconfig', YAML_CONNECTION],
  ['as kubeadm keeps it', 'controller-manager.conf', YAML_CONNECTION],
  ['as Cluster API keeps it', 'value', YAML_CONNECTION],
  ['in JSON', 'config', JSON.stringify(CONNECTION)],
  ['in JSON with escapes', 'config', JSON.stringify(CONNECTION).replaceAll('c', '\\u0063')],
  ['too large to be parsed', 'config', `${YAML_CONNECTION}# ${'x'.repeat(100_000)}`],
] as const;

/** A Secret of the host. */
type Attacked = [
  name: string,
  content: Parameters<typeof secret>[1],
  labels?: Parameters<typeof secret>[2],
  annotations?: StringMap,
];

export function referenceAttacks(newWorld: NewWorld): void {
  describe('attack: read a Secret of the host by naming it', () => {
    const shared = sharedWorld(newWorld, () => ({ config: referencePatches() }));

    /** Why the Secret with this content is refused. */
    const attack = async (...[name, content, labels, annotations]: Attacked): Promise<string> => {
      const { world } = shared();
      const object = secret(`${world.hostNamespace}/${name}`, content, labels);
      if (annotations !== undefined) object.metadata.annotations = annotations;
      // The kubeconfig of a member is there already.
      const known = await world.host.find('Secret', world.hostNamespace, name);
      return expectRefused(shared(), name, known ?? (await world.host.create('Secret', object)));
    };

    test.for([
      [
        "the kubeconfig of a neighbour's virtual cluster",
        'vc-neighbour',
        { config: 'YQ==' },
        'keys of a virtual cluster',
      ],
      [
        'the keys of a control plane under an inconspicuous name',
        'harmless',
        { 'sa.key': 'YQ==', 'sa.pub': 'YQ==' },
        'keys of a control plane',
      ],
      [
        "the administrator's kubeconfig of a control plane, under the key that kubeadm uses",
        'admin',
        { 'super-admin.conf': 'YQ==' },
        'keys of a control plane',
      ],
    ] as const)('%s', async ([, name, data, refusal]) => {
      expect(await attack(name, { data })).toContain(refusal);
    });

    test('the kubeconfig of the virtual cluster and the certificates of its control plane, by their names', async () => {
      const { vcluster } = shared().world;
      for (const [name, content] of [
        [`vc-${vcluster}`, { data: { config: 'YQ==' } }],
        [`${vcluster}-certs`, {}],
      ] as const)
        expect(await attack(name, content)).toMatch(
          /keys of a virtual cluster|kubeconfig of the virtual cluster/u,
        );
    });

    test.for(KUBECONFIGS)('a kubeconfig, %s', async ([what, key, text]) => {
      const name = `connect-${what.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`;
      const data = { [key]: Buffer.from(text).toString('base64') };
      expect(await attack(name, { data })).toContain('it holds a kubeconfig');
    });

    test('a bootstrap token, by its type and by its name', async () => {
      const type = 'bootstrap.kubernetes.io/token';
      for (const [name, content] of [
        ['join', { type }],
        ['bootstrap-token-abcdef', {}],
      ] as const)
        expect(await attack(name, content)).toContain('bootstrap token');
    });

    test("keys of a platform, vCluster's and this program's", async () => {
      const key = `pak_${'a'.repeat(12)}_${'b'.repeat(49)}`;
      const data = { token: Buffer.from(`key: ${key}`).toString('base64') };
      for (const [name, content] of [
        ['vcluster-platform-api-key', {}],
        ['ci', { data }],
      ] as const)
        expect(await attack(name, content)).toContain('platform key');
    });

    test('the record of a Helm release, which holds all values', async () => {
      const content = { type: 'helm.sh/release.v1' };
      expect(await attack('sh.helm.release.v1.my-vcluster.v1', content)).toContain('Helm');
    });

    test.for([
      ['Helm', { owner: 'helm', name: 'prod', status: 'deployed', version: '7' }],
      ['Argo CD', { 'argocd.argoproj.io/secret-type': 'repo-creds' }],
      ['Argo CD', { 'app.kubernetes.io/part-of': 'argocd' }],
      ['Sealed Secrets', { 'sealedsecrets.bitnami.com/sealed-secrets-key': 'active' }],
      ['Istio', { 'istio/multiCluster': 'true' }],
      ['Jenkins', { 'jenkins.io/credentials-type': 'usernamePassword' }],
    ] as const)('what %s keeps in Secrets with the labels %o', async ([program, labels]) => {
      const name = `of-${Object.keys(labels)[0]
        ?.toLowerCase()
        .replaceAll(/[^a-z]+/g, '-')}`;
      expect(await attack(name, {}, labels)).toContain(program);
    });

    test("the token of one of the host's service accounts", async () => {
      const { world } = shared();
      await world.host.request('POST', `/api/v1/namespaces/${world.hostNamespace}/serviceaccounts`, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'powerful' },
      });
      const token = serviceAccountToken(`${world.hostNamespace}/powerful-token`);
      const original = await world.host.create('Secret', token);
      expect(await expectRefused(shared(), 'powerful-token', original)).toContain('service account');
    });

    test('the copy of an object of another virtual cluster, with its marker and without', async () => {
      const origin = { 'vcluster.loft.sh/object-name': 'x', 'vcluster.loft.sh/object-namespace': 'y' };
      for (const [name, labels, annotations] of [
        ['stolen', { [MARKER]: 'another-vcluster' }, undefined],
        ['unmarked', {}, origin],
      ] as const)
        expect(await attack(name, {}, labels, annotations)).toContain(
          'copy of an object of a virtual cluster',
        );
    });

    test("the copy of another tenant's Secret, by its name on the host", async () => {
      const { world, namespace } = shared();
      const victim = await namespace();
      await world.virtual.create('Secret', secret(`${victim}/private`, { data: { p: 'cA==' } }));
      await world.virtual.create('Endpoints', named(`${victim}/web`, { secret: 'private' }));
      const copy = await importedTo(world, 'Secret', `${victim}/private`);
      const note = await expectRefused(shared(), copy.metadata.name, copy);
      expect(note).toContain('copy of an object of a virtual cluster');
    });

    test('a Secret that becomes the copy of a virtual cluster after it was imported is deleted again', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.host.create('Secret', secret(`${world.hostNamespace}/turned`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'turned' }));
      await world.virtual.when('Secret', [ns, 'turned']);
      await world.host.merge('Secret', [world.hostNamespace, 'turned'], {
        metadata: { labels: { [MARKER]: 'another' } },
      });
      await world.virtual.whenGone('Secret', [ns, 'turned']);
      await world.whenEvent(`${ns}/web`, 'ReferenceNotFound');
      expect(await refusalInLog(daemon, 'turned')).toContain('copy of an object');
    });
  });

  describe('objects that the operator excludes', () => {
    const shared = sharedWorld(newWorld, () => {
      const references = {
        refuseSecrets: ['db-*', 'example.com/*', '*.pem'],
        onlyLabelled: 'example.com/shared=yes',
      };
      return { config: { ...referencePatches(), endpointSyncer: { references } } };
    });
    const SHARED = { 'example.com/shared': 'yes' };

    test.for([
      ['db-main', {}],
      ['typed', { type: 'example.com/credential' }],
      ['keyed', { data: { 'client.pem': 'YQ==' } }],
    ] as const)('%s stays on the host, label or not', async ([name, content]) => {
      const { world } = shared();
      const original = await world.host.create(
        'Secret',
        secret(`${world.hostNamespace}/${name}`, content, SHARED),
      );
      expect(await expectRefused(shared(), name, original)).toContain('references.refuseSecrets');
    });

    test('without the label nothing is imported, with it every other object is', async () => {
      const { world, namespace } = shared();
      const place = world.hostNamespace;
      const original = await world.host.create('Secret', secret(`${place}/late`));
      expect(await expectRefused(shared(), 'late', original)).toContain('references.onlyLabelled');
      const ns = await namespace();
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'late' }));
      await world.host.merge('Secret', [place, 'late'], { metadata: { labels: SHARED } });
      await world.virtual.when('Secret', [ns, 'late']);
    });
  });

  describe('attack: choose the kind that is read', () => {
    const shared = sharedWorld(newWorld, () => ({ config: KINDS_BY_DATA }));

    test('a kind that is enabled but in no patch is never read on the host', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.host.create('ConfigMap', configMap(`${world.hostNamespace}/internals`, { k: '1' }));
      await world.virtual.create('Endpoints', target(`${ns}/web`, 'ConfigMap', 'internals'));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotFound')).toContain('internals');
      await world.settle(daemon);
      expect(await world.virtual.find('ConfigMap', ns, 'internals')).toBeUndefined();
    });

    test('a kind that no configuration names is not read at all', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Endpoints', target(`${ns}/web`, 'Role', 'admin'));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotAllowed')).toContain('Role');
    });
  });

  describe('attack: cause side effects on the host', () => {
    const shared = sharedWorld(newWorld, () => ({ config: referencePatches() }));

    test('a virtual service-account token is not copied, or the host would fill it with one of its own', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      await world.virtual.request('POST', `/api/v1/namespaces/${ns}/serviceaccounts`, {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'powerful' },
      });
      await world.virtual.create('Secret', serviceAccountToken(`${ns}/token`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'token' }));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotAllowed')).toContain('service account');
      await world.settle(daemon);
      expect(await world.host.find('Secret', ...short(world, `${ns}/token`))).toBeUndefined();
    });

    test.for([
      ['Helm', { owner: 'helm', name: 'prod', status: 'deployed', version: '7' }],
      ['Argo CD', { 'argocd.argoproj.io/secret-type': 'cluster' }],
      ['Argo CD', { 'app.kubernetes.io/part-of': 'argocd' }],
      ['Sealed Secrets', { 'sealedsecrets.bitnami.com/sealed-secrets-key': 'active' }],
      ['Istio', { 'istio/multiCluster': 'true' }],
      ['Jenkins', { 'jenkins.io/credentials-type': 'usernamePassword' }],
      ['Flux', { 'reconcile.fluxcd.io/watch': 'Enabled' }],
      ['Grafana', { grafana_dashboard: '1' }],
    ] as const)('objects that %s of the host would read by the labels %o', async ([program, labels]) => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const forged = configMap(`${ns}/forged`, { release: 'x' });
      forged.metadata.labels = labels;
      await world.virtual.create('ConfigMap', forged);
      await world.virtual.create('Secret', secret(`${ns}/forged`, {}, labels));
      await world.virtual.create('Endpoints', named(`${ns}/by-config`, { config: 'forged' }));
      await world.virtual.create('Endpoints', named(`${ns}/by-secret`, { secret: 'forged' }));
      expect(await world.whenEvent(`${ns}/by-config`, 'ReferenceNotAllowed')).toContain(program);
      expect(await world.whenEvent(`${ns}/by-secret`, 'ReferenceNotAllowed')).toContain(program);
      await world.settle(daemon);
      expect(await world.host.find('ConfigMap', ...short(world, `${ns}/forged`))).toBeUndefined();
      expect(await world.host.find('Secret', ...short(world, `${ns}/forged`))).toBeUndefined();
    });

    test("an import that is labelled as a release of the host's Helm later is deleted", async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      await world.virtual.create('Secret', secret(`${ns}/turned`));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'turned' }));
      await importedTo(world, 'Secret', `${ns}/turned`);
      await world.virtual.merge('Secret', [ns, 'turned'], { metadata: { labels: { owner: 'helm' } } });
      await world.host.whenGone('Secret', short(world, `${ns}/turned`));
      expect(await world.whenEvent(`${ns}/web`, 'ReferenceNotAllowed')).toContain('Helm');
    });

    test('an object that Helm installed in the virtual cluster does not look as if Helm had installed it on the host', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const labels = { 'app.kubernetes.io/managed-by': 'Helm', app: 'web' };
      await world.virtual.create('Secret', secret(`${ns}/installed`, {}, labels));
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'installed' }));
      const copy = await importedTo(world, 'Secret', `${ns}/installed`);
      expect(copy.metadata.labels).toMatchObject({ app: 'web' });
      expect(copy.metadata.labels).not.toHaveProperty(['app.kubernetes.io/managed-by']);
    });

    test('forged bookkeeping on a virtual Secret does not make another client the owner of its copy', async () => {
      const { world, namespace } = shared();
      const ns = await namespace();
      const forged = secret(`${ns}/forged`, {}, { [MARKER]: 'another-vcluster' });
      forged.metadata.annotations = {
        'vcluster.loft.sh/object-name': 'admin',
        'vcluster.loft.sh/object-namespace': 'kube-system',
        'vcluster.loft.sh/object-host-name': 'elsewhere',
      };
      await world.virtual.create('Secret', forged);
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'forged' }));
      const copy = await importedTo(world, 'Secret', `${ns}/forged`);
      expect(copy.metadata.labels?.[MARKER]).toBe(world.vcluster);
      expect(copy.metadata.annotations).toMatchObject({
        'vcluster.loft.sh/object-name': 'forged',
        'vcluster.loft.sh/object-namespace': ns,
        'vcluster.loft.sh/object-host-name': copy.metadata.name,
      });
    });

    test('an object of the tenant that claims to be an import does not get the name of a host object', async () => {
      const { world, daemon, namespace } = shared();
      const ns = await namespace();
      const fake = secret(`${ns}/fake`, {}, { [MARKER]: world.vcluster });
      fake.metadata.annotations = { 'vcluster.loft.sh/object-imported': 'true' };
      await world.virtual.create('Secret', fake);
      await world.virtual.create('Endpoints', named(`${ns}/web`, { secret: 'fake' }));
      const copy = await world.whenCopy(`${ns}/web`, () => true);
      expect(copy.metadata.annotations?.[NOTES.secret]).toBe(short(world, `${ns}/fake`)[1]);
      await world.settle(daemon);
      expect(await world.host.find('Secret', ...short(world, `${ns}/fake`))).toBeUndefined();
    });
  });
}

/** Of a daemon: a member of a fleet has the Secret of its name. */
export function configuredSecretAttack(newWorld: NewWorld): void {
  describe('attack: read the kubeconfig Secret that the configuration names', () => {
    test('endpointSyncer.virtual.secret, which may have any name', async () => {
      await using world = await newWorld();
      const { readFileSync } = await import('node:fs');
      // In a Secret, a kubeconfig may not name the file of the certificate.
      const config = readFileSync(world.virtual.kubeconfigPath, 'utf8').replace(
        /"certificate-authority":"([^"]+)"/,
        (_, path: string) => `"certificate-authority-data":"${readFileSync(path).toString('base64')}"`,
      );
      const data = { config: Buffer.from(config).toString('base64') };
      const kubeconfig = await world.host.create(
        'Secret',
        secret(`${world.hostNamespace}/${KUBECONFIG}`, { data }),
      );
      const virtual = { kubeconfig: '', secret: KUBECONFIG };
      const daemon = await world.startSync({
        config: { ...referencePatches(), endpointSyncer: { virtual } },
      });
      await world.virtual.create('Endpoints', named('default/thief', { secret: KUBECONFIG }));
      await world.whenEvent('default/thief', 'ReferenceNotFound');
      expect(await refusalInLog(daemon, KUBECONFIG)).toContain('kubeconfig');
      expect(await world.virtual.find('Secret', 'default', KUBECONFIG)).toBeUndefined();
      expect(await world.host.get('Secret', world.hostNamespace, KUBECONFIG)).toEqual(kubeconfig);
    });
  });
}

function serviceAccountToken(key: string): KubeObject {
  const object = secret(key, { type: 'kubernetes.io/service-account-token' });
  object.metadata.annotations = { 'kubernetes.io/service-account.name': 'powerful' };
  return object;
}

function target(key: string, kind: string, name: string): KubeObject {
  const targetRef = { kind, name, namespace: pair(key)[0] };
  return endpoints(key, { subsets: [{ addresses: [{ ip: '10.1.0.1', targetRef }], ports: [{ port: 80 }] }] });
}
