/** The command `render`: output, formats, notes and exit codes. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { capturedRun } from '../captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write: file } = testFolder();

const config = file(
  'config.yaml',
  `sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.annotations["example.com/owner"]
          expression: '"team-" + value'
          reverseExpression: value.replace(/^team-/, "")
        - path: metadata.annotations["example.com/secret"]
          reference: {apiVersion: v1, kind: Secret}
endpointSyncer: {name: vc, host: {namespace: host}}
`,
);

const web = file(
  'web.yaml',
  `apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, uid: u1, annotations: {"example.com/owner": payments}}
subsets: [{addresses: [{ip: 10.0.0.1, targetRef: {kind: Pod, name: web-0, uid: p}}], ports: [{port: 80}]}]
---
apiVersion: v1
kind: Endpoints
metadata: {name: gated, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: gated, namespace: shop}
spec: {selector: {app: gated}, ports: [{port: 80}]}
`,
);

/** Of the last run. */
let [out, err] = ['', ''];

async function render(...args: string[]): Promise<number> {
  const run = await capturedRun(['render', ...args]);
  [out, err] = [run.out, run.err];
  return run.code;
}

function documents(): unknown[] {
  const parsed = parseAllDocuments(out);
  return (Array.isArray(parsed) ? parsed : []).map((document) => document.toJS() as unknown);
}

describe('render', () => {
  test('warns of what only newer versions of Kubernetes take', async () => {
    const services = file(
      'services.yaml',
      'endpointSyncer: {name: vc, host: {namespace: host}, services: sync}',
    );
    const spread = `apiVersion: v1
kind: Service
metadata: {name: 1-db, namespace: shop, uid: u1}
spec: {type: LoadBalancer, ports: [{port: 80, targetPort: 80}], trafficDistribution: PreferSameNode}
`;
    expect(await render('--config', services, '-f', file('spread.yaml', spread))).toBe(0);
    expect(err).toBe(
      'warning: Service host/1-db-x-shop-x-vc: metadata.name: Kubernetes before 1.36 refuses a name that begins with a digit, as 1-db-x-shop-x-vc does\n' +
        'warning: Service host/1-db-x-shop-x-vc: spec.trafficDistribution: Kubernetes before 1.34 refuses "PreferSameNode"\n',
    );
    const older = spread.replace('1-db', 'db').replace('SameNode', 'Close');
    expect(await render('--config', services, '-f', file('older.yaml', older))).toBe(0);
    expect(err).toBe('');
  });

  test('prints the host objects, and the reasons for skipped ones', async () => {
    expect(await render('--config', config, '-f', web)).toBe(0);
    expect(documents()).toMatchObject([
      {
        metadata: {
          name: 'web-x-shop-x-vc',
          namespace: 'host',
          annotations: {
            'example.com/owner': 'team-payments',
          },
        },
        subsets: [
          {
            addresses: [{ targetRef: { name: 'web-0-x-shop-x-vc', namespace: 'host' } }],
            ports: [{ port: 80, protocol: 'TCP' }],
          },
        ],
      },
    ]);
    // The record has no version, because the file has none.
    expect(out).toContain('endpoint-syncer/last-synced: \'{"v":1,"a":');
    expect(err).toBe('skipped Endpoints shop/gated: service has a selector\n');
  });

  test('a host object with only a name makes it an update', async () => {
    const host = file('host.yaml', 'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web-x-shop-x-vc}\n');
    expect(await render('--config', config, '-f', web, '--host', host)).toBe(0);
    expect(documents()).toMatchObject([{ metadata: { name: 'web-x-shop-x-vc' } }]);
  });

  test('a foreign host object stays unchanged', async () => {
    const host = file(
      'foreign.yaml',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web-x-shop-x-vc, annotations: {owner: me}}\n',
    );
    await render('--config', config, '-f', web, '--host', host);
    expect(out).toBe('');
    expect(err).toContain('skipped Endpoints shop/web: NotManaged');
  });

  test('no copy joins a Service of the host, whatever the patches make of its labels', async () => {
    const mapped = file(
      'mapped.yaml',
      `sync:
  toHost:
    namespaces: {enabled: true, mappings: {byName: {shop: shared}}}
    endpointSlices:
      enabled: true
      patches: [{path: 'metadata.labels["kubernetes.io/service-name"]', expression: '"web"'}]
endpointSyncer: {name: vc, host: {namespace: host}}
`,
    );
    const slices = file(
      'joining.yaml',
      `{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: other}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
`,
    );
    const host = file(
      'joined.yaml',
      '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shared}}',
    );
    expect(await render('--config', mapped, '-f', slices, '--host', host)).toBe(0);
    expect(out).toBe('');
    const reason = `NotManaged: The host Service "shared/web" is not the copy of this object's Service`;
    expect(err).toContain(`skipped Endpoints shop/web: ${reason}`);
    expect(err).toContain(`skipped EndpointSlice shop/web-1: ${reason}`);
  });

  test('a change on the host is synced back through the reverse patches', async () => {
    await render('--config', config, '-f', web);
    const changed = file('changed.yaml', out.replace('team-payments', 'team-billing'));
    expect(await render('--config', config, '--reverse', '-f', changed, '--virtual', web)).toBe(0);
    expect(documents()).toMatchObject([
      { metadata: { name: 'web', namespace: 'shop', annotations: { 'example.com/owner': 'billing' } } },
    ]);
    expect(out).not.toContain('vcluster.loft.sh');
  });

  test('an object that patches of two kinds name is imported once', async () => {
    const patches =
      "patches: [{path: 'metadata.annotations.tls', reference: {apiVersion: v1, kind: Secret}}]";
    const both = file(
      'both.yaml',
      `sync:
  toHost:
    endpoints: {${patches}}
    endpointSlices: {enabled: true, ${patches}}
endpointSyncer: {name: vc, host: {namespace: host}}
`,
    );
    const objects = file(
      'both-objects.yaml',
      `{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop, annotations: {tls: web-tls}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, annotations: {tls: web-tls}, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
---
{apiVersion: v1, kind: Secret, metadata: {name: web-tls, namespace: shop}}
`,
    );
    expect(await render('--config', both, '-f', objects)).toBe(0);
    expect(documents()).toMatchObject([{ kind: 'Endpoints' }, { kind: 'Secret' }, { kind: 'EndpointSlice' }]);
  });

  test('a reference names the existing copy on the host', async () => {
    const referring = file(
      'referring.yaml',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: a, namespace: shop, annotations: {"example.com/secret": tls}}\n',
    );
    const host = file(
      'secret.yaml',
      `apiVersion: v1
kind: Secret
metadata:
  name: tls-by-another-syncer
  annotations: {vcluster.loft.sh/object-name: tls, vcluster.loft.sh/object-namespace: shop}
`,
    );
    await render('--config', config, '-f', referring, '--host', host);
    expect(documents()).toMatchObject([
      { metadata: { annotations: { 'example.com/secret': 'tls-by-another-syncer' } } },
    ]);
  });

  test('a host object without a virtual object is translated back as a whole', async () => {
    const edited = file(
      'host-only.yaml',
      `apiVersion: v1
kind: Endpoints
metadata: {name: web-x-shop-x-vc, annotations: {"example.com/owner": team-sales}}
subsets: [{addresses: [{ip: 10.0.0.1}]}]
`,
    );
    expect(await render('--config', config, '--reverse', '-f', edited)).toBe(0);
    expect(documents()).toMatchObject([
      { metadata: { name: 'web', namespace: 'shop', annotations: { 'example.com/owner': 'sales' } } },
    ]);
  });

  test('a failing patch is reported with its position, the others still render, exit 1', async () => {
    const failing = file(
      'failing.yaml',
      `sync: {toHost: {endpoints: {patches: [{path: metadata.labels.n, expression: value.missing.more}]}}}
endpointSyncer: {name: vc, host: {namespace: host}}
`,
    );
    const two = file(
      'two.yaml',
      `apiVersion: v1
kind: Endpoints
metadata: {name: bad, namespace: shop, labels: {"n": x}}
---
apiVersion: v1
kind: Endpoints
metadata: {name: good, namespace: shop}
`,
    );
    const onError = ['--patches-on-error', 'object'];
    expect(await render('--config', failing, '-f', two, ...onError)).toBe(1);
    expect(documents()).toMatchObject([{ metadata: { name: 'good-x-shop-x-vc' } }]);
    expect(err).toMatch(/failed Endpoints shop\/bad: patches\[0\] at metadata\.labels\.n: .*\(runtime\)/);
    expect(await render('--config', failing, '-f', two)).toBe(1);
    expect(documents()).toMatchObject([
      { metadata: { name: 'bad-x-shop-x-vc', labels: { 'vcluster.loft.sh/namespace': 'shop' } } },
      { metadata: { name: 'good-x-shop-x-vc' } },
    ]);
    expect(out).not.toContain('n: x');
    expect(err).toMatch(/failed Endpoints shop\/bad: patches\[0\]/);
  });

  test('every unreadable file is reported with the reason, exit 2', async () => {
    const none = join(folder, 'none.yaml');
    const binary = file('binary.yaml', Buffer.from([0xff, 0xfe, 0]));
    const broken = file('broken.yaml', 'a: [1\n');
    expect(await render('--config', config, '-f', none, binary, broken)).toBe(2);
    expect(err).toContain(`${none}: cannot be read: there is no such file; correct its path\n`);
    expect(err).toContain(`${binary}: is not UTF-8 text: save it as UTF-8, or name another file\n`);
    expect(err).toMatch(/broken\.yaml:2:1: flow sequence .* end with a \]\n/);
  });

  test('a referenced object in no file is a note', async () => {
    const named = file(
      'named.yaml',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: a, namespace: shop, annotations: {example.com/secret: tls}}\n',
    );
    expect(await render('--config', config, '-f', named)).toBe(0);
    expect(err).toBe(
      'note: Secret "shop/tls" is referenced and in no file, so it is not rendered: add its file to -f\n',
    );
  });

  test('an object that no API server takes is exit 2, with its place', async () => {
    const high = file(
      'high.yaml',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\nports: [{port: 80}]\n',
    );
    for (const from of [
      ['-f', high],
      ['-f', web, '--host', high],
    ]) {
      expect(await render('--config', config, ...from)).toBe(2);
      expect(err).toMatch(
        /high\.yaml:4:1: ports: unknown field "ports"; did you mean subsets\[\*\]\.ports\?\n/u,
      );
    }
  });

  test('a note if there is nothing to render', async () => {
    const none = file('no-endpoints.yaml', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n');
    expect(await render('--config', config, '-f', none)).toBe(0);
    expect(err).toBe(`note: no Endpoints or EndpointSlice in ${none}, nothing to render\n`);
  });

  test('an object whose kind and plural are called like a member of every object is passed over', async () => {
    const odd = file(
      'odd.yaml',
      'apiVersion: example.com/v1\nkind: constructor\nmetadata: {name: a, namespace: shop}\n',
    );
    expect(await render('--config', config, '-f', web, '-f', odd)).toBe(0);
    expect([err.includes('iterable'), out.includes('web-x-shop-x-vc')]).toEqual([false, true]);
  });

  test('an object without a list of managed fields is rendered, as null or absent', async () => {
    const bare = file(
      'bare.yaml',
      'apiVersion: v1\nkind: Endpoints\nmetadata: {name: bare, namespace: shop, managedFields: null}\nsubsets: []\n',
    );
    expect(await render('--config', config, '-f', bare)).toBe(0);
    expect(out).toContain('bare-x-shop-x-vc');
  });
});

test('a Service that leads to one that is not copied is noted', async () => {
  const settings = file(
    'services.yaml',
    'endpointSyncer: {name: vc, services: sync, host: {namespace: host}}\n',
  );
  const alias = file(
    'alias.yaml',
    `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: web.shop.svc.cluster.local}
`,
  );
  expect(await render('--config', settings, '-f', alias)).toBe(0);
  expect(out).toContain('externalName: web-x-shop-x-vc.host.svc.cluster.local');
  expect(err).toContain(
    'note: Service shop/alias: spec.externalName names Service "shop/web", which is not copied to the host: it has a selector',
  );
});
