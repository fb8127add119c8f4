/** What people reported with a configuration and objects: the copies that `render` prints for them, and what it says. */

import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseJson, type JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { worldFile } from '../../support/world-file.ts';
import { capturedRun } from '../captured-run.ts';

interface Rendered {
  readonly code: number;
  readonly err: string;
  readonly objects: readonly KubeObject[];
}

async function render(config: string, object: string, ...args: readonly string[]): Promise<Rendered> {
  const files = ['--config', worldFile(config), '-f', worldFile(object)];
  const { code, out, err } = await capturedRun(['render', ...files, ...args]);
  const objects = parseAllDocuments(out).map((one) => one.toJS() as KubeObject | null);
  return { code, err, objects: objects.filter((one) => one !== null) };
}

const silent = { code: 0, err: '' };

/** Without what the translation writes itself. */
function own(map: Readonly<Record<string, string>> = {}): Record<string, string> {
  const isOwn = (key: string): boolean => /^(?:vcluster\.loft\.sh|endpoint-syncer)\//u.test(key);
  return Object.fromEntries(Object.entries(map).filter(([key]) => !isOwn(key)));
}

function copyOf({ objects }: Rendered, kind: string): KubeObject {
  const found = objects.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} is rendered`);
  return found;
}

describe('without patches', () => {
  const CONFIG = 'values/cfg0.yaml';

  test('Endpoints are copied, and their Service is left to vCluster', async () => {
    const rendered = await render(CONFIG, 'field/db.yaml');
    expect(rendered).toMatchObject(silent);
    expect(rendered.objects).toMatchObject([
      {
        kind: 'Endpoints',
        metadata: { namespace: 'team-a', name: 'db-x-shop-x-vc' },
        subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ port: 5432 }] }],
      },
    ]);
  });

  test('a slice of another controller keeps the label that names it', async () => {
    const rendered = await render(CONFIG, 'field/f11-slice.yaml');
    expect(rendered).toMatchObject(silent);
    expect(own(copyOf(rendered, 'EndpointSlice').metadata.labels)).toEqual({
      'multicluster.kubernetes.io/service-name': 'nginx',
      'kubernetes.io/service-name': 'imported-x-shop-x-vc',
      'endpointslice.kubernetes.io/managed-by': 'lighthouse-agent.submariner.io',
    });
  });
});

test('a Pod of a namespace that is not mapped is not named on the host, its address stays', async () => {
  const rendered = await render('field/f5-target.yaml', 'field/f5-object.yaml');
  expect(rendered).toMatchObject(silent);
  expect(rendered.objects).toMatchObject([
    {
      metadata: { namespace: 'h-shop', name: 'hello-00001' },
      subsets: [{ addresses: [{ ip: '192.0.2.60' }] }],
    },
  ]);
  expect(JSON.stringify(rendered.objects)).not.toMatch(/targetRef|activator|serving-system/u);
});

test('labels: a selector as JSON is translated, one that is none fails its patch alone, with how to write it', async () => {
  const rendered = await render('values/lab.yaml', 'values/sel.yaml');
  expect(rendered.code).toBe(1);
  expect(rendered.err).toMatch(
    /^failed Endpoints shop\/web: patches\[2\] at metadata\.annotations\."example\.com\/str2": "release:web" is not a label selector: .*; write release=web/u,
  );
  expect(own(copyOf(rendered, 'Endpoints').metadata.annotations)).toEqual({
    'example.com/sel': '{"matchLabels":{"vcluster.loft.sh/label-vc-x-a4d451ec23":"web"}}',
  });
});

test('excludeAnnotations replaces the default list: said by validate, and so the default ones are copied', async () => {
  const { out } = await capturedRun(['validate', '--config', worldFile('live/excl.yaml')]);
  expect(out).toContain(
    'add control-plane.alpha.kubernetes.io/leader, field.cattle.io/publicEndpoints, kubectl.kubernetes.io/last-applied-configuration',
  );
  const { annotations } = copyOf(await render('live/excl.yaml', 'live/excl-obj.yaml'), 'Endpoints').metadata;
  expect(own(annotations)).toEqual({
    token: '***',
    'kubectl.kubernetes.io/last-applied-configuration': '{"metadata":{"annotations":{"token":"s3cret"}}}',
  });
});

test('a referenced object is copied whole, numbers that no JavaScript number holds included', async () => {
  const files = ['--config', worldFile('live/gref.yaml'), '-f', worldFile('live/gadget.yaml')];
  const { out } = await capturedRun(['render', ...files, '-o', 'json']);
  const { items } = parseJson(out) as { items: JsonObject[] };
  expect(items.find(({ kind }) => kind === 'Gadget')?.['spec']).toEqual(
    parseJson(
      '{"big":9007199254740993,"neg":-9223372036854775808,"max":9223372036854775807,"f":1.0,"e":1e3,"small":0.1,' +
        '"list":[9007199254740993],"empty":{},"nul":null,"constructor":{"a":1},"toString":"x"}',
    ),
  );
});

test('an imported Secret has nothing that makes programs of the host spread, prune or take it over', async () => {
  const rendered = await render('live/imp.yaml', 'live/ref-obj.yaml');
  expect(rendered).toMatchObject(silent);
  const secret = copyOf(rendered, 'Secret');
  expect(secret['data']).toEqual({ a: 'Yg==' });
  expect(own(secret.metadata.annotations)).toEqual({
    'meta.helm.sh/release-name': 'shop',
    'cert-manager.io/issuer-name': 'le',
  });
  expect(own(secret.metadata.labels)).toEqual({
    'kustomize.toolkit.fluxcd.io/name': 'apps',
    'velero.io/exclude-from-backup': 'true',
  });
  const endpoints = copyOf(rendered, 'Endpoints').metadata;
  expect(own(endpoints.annotations)).toEqual({
    'example.com/secret': secret.metadata.name,
    'reflector.v1.k8s.emberstack.com/x': '1',
  });
});

test('a patch of a list leaves what has none of its members', async () => {
  const rendered = await render('live/zero.yaml', 'live/slice.yaml');
  expect(rendered).toMatchObject(silent);
  expect(copyOf(rendered, 'EndpointSlice')).toMatchObject({
    metadata: { namespace: 'team-z', name: 'zz-x-shop-x-vc' },
    endpoints: [{ addresses: ['10.77.1.1'] }],
  });
});

describe('beside other programs of a host', () => {
  const CONFIG = 'newground/config.yaml';
  const beside = (object: string, ...args: readonly string[]) => render(CONFIG, object, ...args);

  test('a load balancer without Endpoints is copied', async () => {
    const rendered = await beside('newground/01-service-without-endpoints.yaml');
    expect(rendered).toMatchObject(silent);
    expect(copyOf(rendered, 'Service')).toMatchObject({
      metadata: { name: 'db-x-shop-x-vc' },
      spec: { type: 'LoadBalancer', ports: [{ name: 'sql', port: 5432 }] },
    });
  });

  test('annotations that choose an address of a load balancer are copied only if they are allowed', async () => {
    const file = 'newground/02-addresses-by-annotation.yaml';
    const annotationsOf = (one: Rendered) => own(copyOf(one, 'Service').metadata.annotations);
    const rendered = await beside(file);
    expect(annotationsOf(rendered)).toEqual({ 'example.com/kept': 'yes' });
    expect(copyOf(rendered, 'Service')['spec']).not.toHaveProperty('loadBalancerIP');
    const services = 'endpointSyncer.services={mode: sync, allow: [loadBalancerIP]}';
    const allowed = await beside(file, '--set', services);
    expect(annotationsOf(allowed)).toEqual({
      'example.com/kept': 'yes',
      'metallb.io/loadBalancerIPs': '198.51.100.10',
      'kube-vip.io/loadbalancerIPs': '198.51.100.10',
      'lbipam.cilium.io/ips': '198.51.100.10',
      'lbipam.cilium.io/sharing-cross-namespace': '*',
    });
    expect(copyOf(allowed, 'Service')['spec']).toMatchObject({ loadBalancerIP: '198.51.100.10' });
  });

  test('what a program of the host allocated stays', async () => {
    const host = ['--host', worldFile('newground/03-host.yaml')];
    const rendered = await beside('newground/03-host-allocated.yaml', ...host);
    expect(copyOf(rendered, 'Service')['spec']).toMatchObject({
      loadBalancerIP: '198.51.100.10',
      externalIPs: ['198.51.100.11'],
    });
  });

  test('what a load balancer wrote is not synced back', async () => {
    const { metadata } = copyOf(await beside('newground/04-host-results.yaml', '--reverse'), 'Service');
    expect([metadata.name, metadata.annotations, metadata.labels]).toEqual([
      'db',
      { 'example.com/note': 'by the host' },
      {},
    ]);
  });

  test('an alias of a Service that is never copied is noted', async () => {
    const rendered = await beside('newground/05-alias.yaml');
    expect(rendered.code).toBe(0);
    expect(rendered.err.split('\n')).toEqual([
      'skipped Service shop/web: selects Pods',
      expect.stringMatching(
        /^note: Service shop\/alias: spec\.externalName names Service "shop\/web", which is not copied to the host: it has a selector/u,
      ),
      '',
    ]);
    expect(copyOf(rendered, 'Service')).toMatchObject({
      metadata: { name: 'alias-x-shop-x-vc' },
      spec: { type: 'ExternalName', externalName: 'web-x-shop-x-vc.team-a.svc.cluster.local' },
    });
  });

  test('no Pod is named on a host without the Pods', async () => {
    const slice = copyOf(await beside('newground/06-pod-reference.yaml'), 'EndpointSlice');
    expect(slice['endpoints']).toEqual([{ addresses: ['192.0.2.9'] }]);
  });

  test('an FQDN address that names a Service is that of its copy', async () => {
    const slice = copyOf(await beside('newground/11-fqdn.yaml'), 'EndpointSlice');
    expect(slice).toMatchObject({ endpoints: [{ addresses: ['db-x-shop-x-vc.team-a.svc.cluster.local'] }] });
  });

  test('the label that hides a slice from kube-proxy is not copied', async () => {
    const { metadata } = copyOf(await beside('newground/12-headless-label.yaml'), 'EndpointSlice');
    expect(own(metadata.labels)).toEqual({ 'kubernetes.io/service-name': 'hl-x-shop-x-vc' });
  });
});
