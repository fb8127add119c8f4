/** kubectl against the embedded server: the commands that users run against the demo's clusters. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startEmbeddedCluster, type EmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { suiteClusters } from './suite-clusters.ts';

let cluster: EmbeddedCluster;
let directory: string;

beforeAll(async () => {
  cluster = await startEmbeddedCluster({ name: 'kubectl' });
  directory = mkdtempSync(join(tmpdir(), 'endpoint-syncer-kubectl-'));
  writeFileSync(join(directory, 'kubeconfig'), cluster.kubeconfig);
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

interface Output {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs kubectl to its end. `editor`: what `kubectl edit` calls. */
function run(command: string, options: { input?: string; editor?: string } = {}): Promise<Output> {
  const env = {
    ...process.env,
    KUBECONFIG: join(directory, 'kubeconfig'),
    KUBECACHEDIR: join(directory, 'cache'),
    ...(options.editor === undefined ? {} : { KUBE_EDITOR: options.editor }),
  };
  return new Promise((resolve) => {
    const child = execFile(suiteClusters().kubectl, words(command), { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, out, err });
    });
    child.stdin?.end(options.input ?? '');
  });
}

/** The output of a command that must succeed. */
async function kubectl(command: string, options: { input?: string; editor?: string } = {}): Promise<string> {
  const { code, out, err } = await run(command, options);
  if (code !== 0) throw new Error(`kubectl ${command}: exit ${code}\n${out}${err}`);
  return out;
}

/** Words, where single quotes hold one together. */
function words(command: string): string[] {
  return (command.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map((word) => word.replaceAll("'", ''));
}

function manifest(name: string, ip = '10.0.0.1', labels = ''): string {
  return `apiVersion: v1
kind: Endpoints
metadata:
  name: ${name}
  labels: {kept: here${labels}}
subsets:
- addresses: [{ip: ${ip}, targetRef: {kind: Pod, name: p1}}, {ip: 10.0.0.2}, {ip: 10.0.0.3}, {ip: 10.0.0.4}]
  ports: [{name: http, port: 80, protocol: TCP}]
`;
}

describe('kubectl reads', () => {
  beforeAll(() => kubectl('create -f -', { input: manifest('web', '10.0.0.1', ', app: web') }));

  test('get, with the columns of a real cluster', async () => {
    const table = await kubectl('get endpoints web');
    expect(table.split('\n')[0]).toMatch(/^NAME +ENDPOINTS +AGE$/);
    expect(table).toContain('10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...');
    expect(await kubectl('get ep -o wide')).toContain('web');
    expect(await kubectl('get ep -A --show-labels')).toContain('app=web');
    expect(await kubectl('get ep -l app=web -o name')).toBe('endpoints/web\n');
    expect(await kubectl('get ep --field-selector metadata.name=web -o name')).toBe('endpoints/web\n');
  });

  test('get -o yaml and json', async () => {
    expect(await kubectl('get ep web -o yaml')).toContain('    protocol: TCP');
    expect(JSON.parse(await kubectl('get ep web -o json'))).toMatchObject({ kind: 'Endpoints' });
    expect(await kubectl("get ep web -o jsonpath='{.subsets[0].addresses[0].ip}'")).toBe('10.0.0.1');
  });

  test('describe', async () => {
    const text = await kubectl('describe endpoints web');
    expect(text).toContain('Addresses:          10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4');
    expect(text).toMatch(/http +80 +TCP/);
    expect(text).toMatch(/Events: +<none>/);
    expect(await kubectl('describe svc kubernetes')).toMatch(/Type: +ClusterIP/);
    expect(await kubectl('describe ns default')).toContain('Status:       Active');
  });

  test('explain, api-resources, api-versions, version', async () => {
    expect(await kubectl('explain endpoints.subsets.addresses')).toContain('targetRef\t<ObjectReference>');
    expect(await kubectl('explain svc.spec --recursive')).toContain('targetPort');
    expect(await kubectl('explain endpointslices.endpoints')).toContain('addresses\t<[]string> -required-');
    expect(await kubectl('api-resources')).toMatch(/endpoints +ep +v1 +true +Endpoints/);
    expect(await kubectl('api-versions')).toBe(
      'authorization.k8s.io/v1\ncoordination.k8s.io/v1\ndiscovery.k8s.io/v1\nevents.k8s.io/v1\nv1\n',
    );
    expect(await kubectl('version -o json')).toContain('"gitVersion": "v1.37.0+embedded"');
  });

  test('auth can-i', async () => {
    expect(await kubectl('auth can-i update endpoints')).toBe('yes\n');
  });

  test('a missing object is an error', async () => {
    const { code, err } = await run('get ep nope');
    expect([code, err]).toEqual([1, expect.stringContaining('(NotFound): endpoints "nope" not found')]);
    expect((await run('get bogus')).err).toContain('the server doesn\'t have a resource type "bogus"');
  });
});

describe('kubectl writes', () => {
  test('apply creates, changes, keeps unchanged objects, and refuses unknown fields', async () => {
    const input = manifest('applied');
    expect(await kubectl('apply -f -', { input })).toBe('endpoints/applied created\n');
    expect(await kubectl('apply -f -', { input })).toBe('endpoints/applied unchanged\n');
    const changed = manifest('applied', '10.9.9.9', ', a: b');
    const diff = await run('diff -f -', { input: changed });
    expect([diff.code, diff.out]).toEqual([1, expect.stringContaining('+  - ip: 10.9.9.9')]);
    expect(await kubectl('apply -f -', { input: changed })).toBe('endpoints/applied configured\n');
    expect(
      await kubectl("get ep applied -o jsonpath='{.subsets[0].addresses[0].ip} {.metadata.labels.a}'"),
    ).toBe('10.9.9.9 b');
    const wrong = await run('apply -f -', { input: `${manifest('wrong')}bogus: 1\n` });
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('unknown field "bogus"')]);
    expect(await kubectl('apply --dry-run=server -f -', { input: manifest('dry') })).toContain(
      'created (server dry run)',
    );
    expect((await run('get ep dry')).code).toBe(1);
  });

  test('apply --server-side: ownership, conflict, force', async () => {
    const apply = (manager: string, ip: string, more = ''): Promise<Output> =>
      run(`apply --server-side --field-manager ${manager} ${more} -f -`, { input: manifest('ssa', ip) });
    expect((await apply('a', '10.0.0.1')).out).toBe('endpoints/ssa serverside-applied\n');
    const conflict = await apply('b', '10.0.0.9');
    expect([conflict.code, conflict.err]).toEqual([
      1,
      expect.stringContaining('Apply failed with 1 conflict: conflict with "a": .subsets'),
    ]);
    expect((await apply('b', '10.0.0.9', '--force-conflicts')).code).toBe(0);
    expect(
      await kubectl("get ep ssa --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager}'"),
    ).toContain('b');
  });

  test('edit', async () => {
    await kubectl('create -f -', { input: manifest('edited') });
    expect(await kubectl('edit ep edited', { editor: 'sed -i s/10.0.0.4/10.0.0.44/' })).toBe(
      'endpoints/edited edited\n',
    );
    expect(await kubectl("get ep edited -o jsonpath='{.subsets[0].addresses[3].ip}'")).toBe('10.0.0.44');
    const wrong = await run('edit ep edited', { editor: 'sed -i s/10.0.0.44/nonsense/' });
    expect(wrong.err).toContain('endpoints "edited" is invalid');
  });

  test('patch of all types, annotate, label, replace', async () => {
    await kubectl('create -f -', { input: manifest('patched') });
    const add = '[{"op":"add","path":"/metadata/annotations/x","value":"y"}]';
    await kubectl(`patch ep patched --type=json -p '${add}'`);
    await kubectl(`patch ep patched --type=merge -p '{"metadata":{"labels":{"z":"1"}}}'`);
    await kubectl(`patch ep patched --type=strategic -p '{"subsets":[{"addresses":[{"ip":"10.5.5.5"}]}]}'`);
    await kubectl('annotate ep patched foo=bar x-');
    await kubectl('label ep patched q=r z-');
    expect(JSON.parse(await kubectl('get ep patched -o json'))).toMatchObject({
      metadata: { annotations: { foo: 'bar' }, labels: { q: 'r' } },
      subsets: [{ addresses: [{ ip: '10.5.5.5' }] }],
    });
    expect(await kubectl('replace -f -', { input: manifest('patched') })).toBe(
      'endpoints/patched replaced\n',
    );
  });

  test('create of namespaces, Secrets, ConfigMaps, Services and Pods by their commands', async () => {
    expect(await kubectl('create namespace made')).toBe('namespace/made created\n');
    await kubectl('create secret generic s --from-literal=a=b -n made');
    await kubectl('create configmap c --from-literal=a=b -n made');
    await kubectl('create service clusterip web --tcp=80:8080 -n made');
    await kubectl('run p --image=x -n made');
    const all = await kubectl('get secrets,configmaps,services,pods -n made');
    expect(all).toMatch(/secret\/s +Opaque +1/);
    expect(all).toMatch(/configmap\/c +1/);
    expect(all).toMatch(/service\/web +ClusterIP +<none> +<none> +80\/TCP/);
    expect(all).toMatch(/pod\/p +0\/1 +Pending/);
    expect(await kubectl('delete pod p -n made')).toContain('deleted');
    expect(await kubectl('delete namespace made')).toContain('deleted');
    expect((await run('get namespace made')).code).toBe(1);
  });

  test('delete waits until the object is gone, with every propagation policy', async () => {
    for (const cascade of ['background', 'foreground', 'orphan']) {
      await kubectl('create -f -', { input: manifest('gone') });
      const deleted = await kubectl(`delete ep gone --cascade=${cascade} --timeout=100s`);
      expect(deleted).toContain('endpoints "gone" deleted');
    }
    expect(await kubectl('delete ep gone --ignore-not-found')).toBe('');
    expect((await run('delete ep gone')).err).toContain('NotFound');
  });
});

describe('kubectl watches', () => {
  test('get -w', async () => {
    await kubectl('create -f -', { input: manifest('watched') });
    const env = {
      ...process.env,
      KUBECONFIG: join(directory, 'kubeconfig'),
      KUBECACHEDIR: join(directory, 'cache'),
    };
    const child = execFile(suiteClusters().kubectl, ['get', 'ep', 'watched', '-w', '-o', 'name'], { env });
    const lines: string[] = [];
    const seen = new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: string) => {
        const had = lines.length;
        lines.push(...chunk.split('\n').filter(Boolean));
        if (had === 0) void kubectl('label ep watched seen=1');
        if (lines.length >= 2) resolve();
      });
    });
    try {
      await seen;
    } finally {
      child.kill();
    }
    expect(lines).toEqual(['endpoints/watched', 'endpoints/watched']);
  });

  test('events', async () => {
    const uid = await kubectl("get ep watched -o jsonpath='{.metadata.uid}'");
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'e1', namespace: 'default' },
      eventTime: '2026-01-01T00:00:00.000001Z',
      reportingController: 'endpoint-syncer',
      reportingInstance: 'one',
      action: 'Sync',
      reason: 'Synced',
      note: 'all is well',
      type: 'Normal',
      regarding: { kind: 'Endpoints', name: 'watched', namespace: 'default', uid },
    };
    await kubectl('create -f -', { input: JSON.stringify(event) });
    expect(await kubectl('events')).toMatch(/Normal +Synced +Endpoints\/watched +all is well/);
    expect(await kubectl('get events')).toMatch(/Normal +Synced +endpoints\/watched +all is well/);
    expect(await kubectl('describe ep watched')).toContain('all is well');
    expect(await kubectl('events --for endpoints/other')).not.toContain('all is well');
  });
});
