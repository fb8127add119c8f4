/** References: `render`, `patch` and `test` write the names that the daemon writes (`test/scenarios/references.ts`). */

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { capturedRun } from '../../cli/captured-run.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';
import { testFolder } from '../../support/test-folder.ts';

const { folder, write } = testFolder();

let files = 0;

const file = (content: unknown): string => write(`${files++}.yaml`, JSON.stringify(content));

/** Of the last run. */
let [out, err] = ['', ''];

async function run(...args: string[]): Promise<number> {
  const { code, ...printed } = await capturedRun(args);
  ({ out, err } = printed);
  return code;
}

const PATCHES = [
  { path: 'metadata.annotations.service', reference: { apiVersion: 'v1', kind: 'Service' } },
  { path: 'metadata.annotations.pod', reference: { apiVersion: 'v1', kind: 'Pod' } },
  {
    path: 'metadata',
    reference: {
      apiVersion: 'v1',
      kind: 'Secret',
      namePath: 'annotations.secret',
      namespacePath: 'namespace',
    },
  },
  { path: 'metadata.annotations.dns', expression: 'virtualToHostDNS(value)' },
];
const config = file({
  sync: { toHost: { endpoints: { patches: PATCHES } } },
  endpointSyncer: { name: 'vc', host: { namespace: 'host' } },
});

function object(kind: string, name: string, metadata: object = {}): object {
  return { apiVersion: 'v1', kind, metadata: { name, namespace: 'default', ...metadata } };
}

const VIRTUAL = { service: 'kubernetes', pod: 'db-0', secret: 'tls', dns: 'kubernetes.default.svc' };
const HOST = {
  service: 'vc',
  pod: 'db-0-x-default-x-vc',
  secret: hostNameShort('tls', 'default', 'vc'),
  dns: 'vc.host.svc',
};

describe('the names of referenced objects', () => {
  const web = object('Endpoints', 'web', { annotations: VIRTUAL });

  test.each([
    ['nothing else', []],
    [
      'the objects',
      [
        { ...object('Service', 'kubernetes'), spec: { ports: [{ port: 443 }] } },
        { ...object('Pod', 'db-0'), spec: { containers: [{ name: 'db', image: 'db' }] } },
        object('Secret', 'tls'),
      ],
    ],
  ])('with %s in the virtual cluster', async (_, others) => {
    const virtual = { apiVersion: 'v1', kind: 'List', items: [web, ...others] };
    await run('render', '--config', config, '-f', file(virtual));
    const [rendered] = out.split('---\n');
    expect(parse(rendered ?? '')).toMatchObject({ metadata: { annotations: HOST } });

    const copy = { apiVersion: 'v1', kind: 'Endpoints', metadata: { annotations: HOST } };
    const cases = [{ name: 'references', virtual: [web, ...others], expect: { host: [copy] } }];
    write('endpoint-syncer-test.yaml', JSON.stringify({ config, cases }));
    expect({ code: await run('test', folder), out }).toMatchObject({ code: 0 });
  });

  test('with the patches alone', async () => {
    await run('patch', '--config', config, '-f', file(web));
    expect(parse(out)).toMatchObject({ metadata: { annotations: HOST } });
  });
});

describe('a name that was changed on the host', () => {
  const reversed = async (secret: string, virtual: readonly object[]): Promise<unknown> => {
    const annotations = { secret };
    const host = { ...object('Endpoints', 'web-x-default-x-vc', { namespace: 'host', annotations }) };
    const world = { apiVersion: 'v1', kind: 'List', items: virtual };
    await run('render', '--config', config, '--reverse', '-f', file(host), '--virtual', file(world));
    return parse(out);
  };

  test('is that of a virtual object which is not imported yet', async () => {
    const back = await reversed(hostNameShort('next', 'default', 'vc'), [object('Secret', 'next')]);
    expect(back).toMatchObject({ metadata: { name: 'web', annotations: { secret: 'next' } } });
  });

  test('is an error if no virtual object has it', async () => {
    await reversed('v0123456789abc', [object('Secret', 'next')]);
    const message = 'no Secret of the virtual cluster has the name "v0123456789abc" on the host';
    expect(err).toContain(message);
    const host = object('Endpoints', 'web', { namespace: 'host', annotations: { secret: 'v0123456789abc' } });
    expect(await run('patch', '--config', config, '--reverse', '-f', file(host))).toBe(1);
    expect(err).toContain(message);
  });
});
