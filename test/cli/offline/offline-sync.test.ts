/** References: `render`, `patch` and `test` write the names that the daemon writes (`test/scenarios/references.ts`). */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { runProgram } from '../../../src/cli/program.ts';
import { hostNameShort } from '../../../src/syncer/translate/names.ts';

const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-references-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

function file(content: unknown): string {
  const path = join(folder, `${files++}.yaml`);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

let out = '';
let err = '';

beforeEach(() => {
  [out, err] = ['', ''];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((out += String(text)), true));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((err += String(text)), true));
});
afterEach(() => vi.restoreAllMocks());

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
    ['the objects', [object('Service', 'kubernetes'), object('Pod', 'db-0'), object('Secret', 'tls')]],
  ])('with %s in the virtual cluster', async (_, others) => {
    const virtual = { apiVersion: 'v1', kind: 'List', items: [web, ...others] };
    await runProgram(['render', '--config', config, '-f', file(virtual)]);
    const [rendered] = out.split('---\n');
    expect(parse(rendered ?? '')).toMatchObject({ metadata: { annotations: HOST } });

    const copy = { apiVersion: 'v1', kind: 'Endpoints', metadata: { annotations: HOST } };
    const cases = [{ name: 'references', virtual: [web, ...others], expect: { host: [copy] } }];
    writeFileSync(join(folder, 'endpoint-syncer-test.yaml'), JSON.stringify({ config, cases }));
    out = '';
    expect({ code: await runProgram(['test', folder]), out }).toMatchObject({ code: 0 });
  });

  test('with the patches alone', async () => {
    await runProgram(['patch', '--config', config, '-f', file(web)]);
    expect(parse(out)).toMatchObject({ metadata: { annotations: HOST } });
  });
});

describe('a name that was changed on the host', () => {
  const reversed = async (secret: string, virtual: readonly object[]): Promise<unknown> => {
    const annotations = { secret };
    const host = { ...object('Endpoints', 'web-x-default-x-vc', { namespace: 'host', annotations }) };
    const world = { apiVersion: 'v1', kind: 'List', items: virtual };
    await runProgram(['render', '--config', config, '--reverse', '-f', file(host), '--virtual', file(world)]);
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
    [out, err] = ['', ''];
    const host = object('Endpoints', 'web', { namespace: 'host', annotations: { secret: 'v0123456789abc' } });
    expect(await runProgram(['patch', '--config', config, '--reverse', '-f', file(host)])).toBe(1);
    expect(err).toContain(message);
  });
});
