/** Patches of Services in the commands that need no cluster: `render`, `patch` and `test`. */

import { describe, expect, test } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { capturedRun } from '../captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';

const { write } = testFolder();

function file(name: string, content: unknown): string {
  return write(name, stringify(content));
}

const OWNER = {
  path: 'metadata.annotations.owner',
  expression: '"team-" + value',
  reverseExpression: 'value.replace(/^team-/, "")',
};
const PORT = {
  path: 'spec.ports[*].port',
  expression: 'value + 1000',
  reverseExpression: 'value - 1000',
};
const TYPE = { path: 'spec.type', expression: '"NodePort"' };

function config(name: string, services: unknown, ...patches: object[]): string {
  return file(name, {
    sync: { toHost: { services: { patches } } },
    endpointSyncer: { name: 'vc', host: { namespace: 'host' }, services },
  });
}

const synced = config('config.yaml', 'sync', OWNER, PORT, TYPE);

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'db', namespace: 'shop', annotations: { owner: 'web' } },
  spec: {
    type: 'ClusterIP',
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    externalIPs: ['203.0.113.1'],
    ports: [{ name: 'http', port: 80, targetPort: 8080 }],
  },
};
const ENDPOINTS = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'db', namespace: 'shop' },
  subsets: [],
};
const HOST = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'db-x-shop-x-vc', namespace: 'host', annotations: { owner: 'team-web' } },
  spec: { type: 'NodePort', ports: [{ name: 'http', port: 1080, targetPort: 8080, protocol: 'TCP' }] },
};

function serviceIn(out: string): unknown {
  return parseAllDocuments(out)
    .map((document) => document.toJS() as { kind?: string }) // the rendered objects
    .find(({ kind }) => kind === 'Service');
}

describe('render', () => {
  const files = ['-f', file('service.yaml', SERVICE), '-f', file('endpoints.yaml', ENDPOINTS)];

  test('shows the patched copy, without what a copy must not have', async () => {
    const { code, out } = await capturedRun(['render', '--config', synced, ...files]);
    expect([code, serviceIn(out)]).toMatchObject([0, HOST]);
    expect(out).not.toMatch(/clusterIP|externalIPs/u);
  });

  test('reports a patch that would make the copy invalid', async () => {
    const invalid = config('invalid.yaml', 'sync', {
      path: 'spec',
      expression: '({ ...value, externalIPs: context.virtualObject.spec.externalIPs })',
    });
    const { code, out, err } = await capturedRun(['render', '--config', invalid, ...files]);
    expect(code).toBe(1);
    expect(out + err).toMatch(
      /Service shop\/db: patches\[0\] at spec\.externalIPs: takes traffic of the host/u,
    );
  });

  test('applies none where vCluster syncs Services', async () => {
    const theirs = config('theirs.yaml', 'vcluster', OWNER);
    const { code, out } = await capturedRun(['render', '--config', theirs, ...files]);
    expect([code, serviceIn(out)]).toEqual([0, undefined]);
  });
});

describe('patch', () => {
  const given = file('patched.yaml', { ...SERVICE, spec: { ...SERVICE.spec, selector: { app: 'db' } } });

  test('applies those of Services, in both directions', async () => {
    const forward = await capturedRun(['patch', '--config', synced, '-f', given]);
    expect([forward.code, serviceIn(forward.out)]).toMatchObject([
      0,
      {
        metadata: { annotations: { owner: 'team-web' } },
        spec: { type: 'NodePort', ports: [{ port: 1080 }] },
      },
    ]);
    const host = file('host.yaml', HOST);
    const back = await capturedRun(['patch', '--config', synced, '--reverse', '-f', host]);
    expect([back.code, serviceIn(back.out)]).toMatchObject([
      0,
      { metadata: { annotations: { owner: 'web' } }, spec: { ports: [{ port: 80 }] } },
    ]);
  });

  test('validates the result as a Service', async () => {
    const invalid = config('bad-port.yaml', 'sync', { path: 'spec.ports[*].port', expression: '0' });
    const { code, err } = await capturedRun(['patch', '--config', invalid, '-f', given]);
    expect(code).toBe(1);
    expect(err).toMatch(/spec\.ports\.0\.port: must be between 1 and 65535, inclusive, not 0/u);
  });
});

test('a test case of a Service compares both directions and counts its patches', async () => {
  const cases = file('services.endpoint-syncer-test.yaml', {
    config: 'config.yaml',
    cases: [
      {
        name: 'patched in both directions',
        virtual: [SERVICE, ENDPOINTS],
        host: [],
        expect: { host: [HOST] },
      },
      {
        name: 'and back again',
        virtual: [
          { ...SERVICE, spec: { type: 'NodePort', ports: [{ name: 'http', port: 80, targetPort: 8080 }] } },
          ENDPOINTS,
        ],
        host: [],
        expect: { host: [HOST] },
        roundTrip: true,
      },
    ],
  });
  const { code, out } = await capturedRun(['test', cases, '--coverage']);
  expect([code, out]).toEqual([0, expect.stringMatching(/^2 of 2 cases passed$/mu)]);
  expect(out).not.toMatch(/services\.patches.*never/u);
});
