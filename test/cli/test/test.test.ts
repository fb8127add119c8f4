/** The command `test`: output, exit codes, `--watch`. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, describe, expect, test } from 'vitest';
import { changeSince } from '../../../src/cli/test/test.ts';
import { capturedRun, MAIN } from '../captured-run.ts';
import { CONFIG, HOLDS, WEB, casesOf, folder, folderWith, oneCase } from './case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('test', () => {
  test('a reference to an object in no file is noted once, unless the case expects Events', async () => {
    const missing =
      'virtual: [{apiVersion: v1, kind: Endpoints, metadata: {name: a, annotations: {tls: ca}}}]';
    const expecting = `${missing}\nexpect: {events: [{reason: ReferenceNotFound}]}`;
    const { code, err } = await capturedRun(['test', folderWith(casesOf([missing, expecting]))]);
    expect(code).toBe(0);
    expect(err).toMatch(
      /^note: .*endpoint-syncer-test\.yaml: it: Secret "default\/ca" is referenced and in no file of the case, [^\n]*\n$/u,
    );
  });

  test('EndpointSlices are synced with their own patches, in both directions', async () => {
    const path = folderWith({
      'config.yaml': `sync:
  toHost:
    endpointSlices:
      enabled: true
      patches:
        - path: endpoints[*].zone
          expression: '"host-" + value'
          reverseExpression: value.replace(/^host-/, "")
endpointSyncer: {name: vc, host: {namespace: host}}
`,
      'slice.yaml': `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1], zone: a}]
ports: []
`,
      'endpoint-syncer-test.yaml': `config: config.yaml
cases:
  - name: zone
    virtual: [slice.yaml]
    expect: {host: [{kind: EndpointSlice, metadata: {name: db-1-x-shop-x-vc}, endpoints: [{zone: host-a}]}]}
    roundTrip: true
  - name: not the zone of the host
    virtual: [slice.yaml]
    expect: {host: [{kind: EndpointSlice, endpoints: [{zone: a}]}]}
`,
    });
    const { out } = await capturedRun(['test', path]);
    expect(out).toMatch(/ zone +\d+ms +pass\n/);
    expect(out).toContain('1 of 2 cases passed');
    expect(out).toContain('    - expected: "a"\n    + actual:   "host-a"\n');
  });
});

test('--watch runs again after a change of a test file, the configuration or an object', async () => {
  const path = folderWith(oneCase(HOLDS['a subset of the copy'] ?? ''));
  const child = spawn(process.execPath, [MAIN, 'test', path, '--watch', '-o', 'json'], { env: {} });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  // One change may cause more than one run.
  const lastReport = (): unknown => {
    const text = `{${out.split(/^\{$/mu).at(-1) ?? ''}`;
    return text.endsWith('}\n') ? (JSON.parse(text) as unknown) : undefined;
  };
  const reports = (counts: { passed: number; failed: number }): Promise<void> =>
    expect.poll(lastReport, { interval: 20 }).toMatchObject(counts);
  try {
    await reports({ passed: 1, failed: 0 });
    await expect.poll(() => err).toMatch(/\nwatching \d+ files, press Ctrl-C to stop\n/);
    writeFileSync(join(path, 'objects/web.yaml'), WEB.replace('owner: shop', 'owner: other'));
    await reports({ passed: 0, failed: 1 });
    writeFileSync(join(path, 'config.yaml'), CONFIG.replace('"team-" + value', '"team-shop"'));
    await reports({ passed: 1, failed: 0 });
    writeFileSync(join(path, 'endpoint-syncer-test.yaml'), 'config: config.yaml\ncases: []\n');
    await reports({ passed: 0, failed: 0 });
  } finally {
    child.kill('SIGINT');
  }
  await once(child, 'exit');
});

test('a file that changes during the round that reads it counts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'file-changes-'));
  try {
    const startMs = Date.now() - 10;
    const file = join(folder, 'config.yaml');
    writeFileSync(file, 'changed');
    expect(await changeSince([import.meta.filename, file], startMs)).toBeUndefined();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
