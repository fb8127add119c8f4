/** `test --update` writes the actual results into a test file. */

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { capturedRun } from '../captured-run.ts';
import { BASE, VIRTUAL_WEB, folder, folderWith, oneCase } from './case-files.ts';

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('--update', () => {
  test('--update replaces wrong expectations in place, and keeps comments and fields that were not compared', async () => {
    const files = oneCase(`${VIRTUAL_WEB} # one object
expect:
  host:
    # the copy
    - {metadata: {name: web-x-shop-x-vc, annotations: {owner: shop}}} # of web
    - {metadata: {name: gone}}
  skipped: []`);
    const path = folderWith(files);
    const { code, err } = await capturedRun(['test', path, '--update']);
    expect({ code, err }).toEqual({ code: 0, err: `updated ${join(path, 'endpoint-syncer-test.yaml')}\n` });
    const text = readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8');
    expect(text).toBe(
      files['endpoint-syncer-test.yaml']
        ?.replace('owner: shop', 'owner: team-shop')
        .replace(/ *- .*gone.*\n/, ''),
    );
    expect((await capturedRun(['test', path])).code).toBe(0);
    expect((await capturedRun(['test', path, '--update'])).err).toBe('');
  });

  test('--update writes keys and texts that are read as what they are', async () => {
    const text = `config: config.yaml
cases:
  - name: words
    virtual:
      - apiVersion: v1
        kind: Endpoints
        metadata: {name: web, namespace: shop, annotations: {"on": "no", "1.10": "1e1_0", "y": "0X1F"}}
        subsets: []
    expect:
      host: [{kind: Endpoints, metadata: {name: web-x-shop-x-vc, annotations: {"on": "yes"}}}]
  - name: bare
    virtual:
      - {apiVersion: v1, kind: Endpoints, metadata: {name: api, namespace: shop, annotations: {"017": "off"}}}
`;
    const path = folderWith({ ...BASE, 'endpoint-syncer-test.yaml': text });
    expect((await capturedRun(['test', path, '--update'])).code).toBe(0);
    expect(await capturedRun(['test', path])).toMatchObject({ code: 0, err: '' });
    const updated = readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8');
    expect(updated).toContain('annotations: {"on": "no"}');
    expect(updated).toContain('"017": "off"');
  });

  test('--update corrects one expectation where cases share parts of them, and the inputs stay', async () => {
    const text = `config: config.yaml
cases:
  - name: one
    virtual:
      - &web
        apiVersion: v1
        kind: Endpoints
        metadata: {name: web, namespace: shop, labels: &labels {app: web}}
        subsets: []
    expect: &one
      host: [{kind: Endpoints, metadata: &metadata {name: web-x-shop-x-vc, labels: *labels}}]
  - name: two
    virtual: [{<<: *web, metadata: {name: web, namespace: shop, labels: {app: api}}}]
    expect: *one
  - name: three
    virtual: [{<<: *web, metadata: {name: web, namespace: shop, labels: {app: db}}}]
    expect:
      host: [{kind: Endpoints, metadata: {<<: *metadata}}]
`;
    const path = folderWith({ ...BASE, 'endpoint-syncer-test.yaml': text });
    expect((await capturedRun(['test', path])).code).toBe(1);
    const { code, err } = await capturedRun(['test', path, '--update']);
    expect({ code, err }).toEqual({ code: 0, err: `updated ${join(path, 'endpoint-syncer-test.yaml')}\n` });
    expect((await capturedRun(['test', path])).code).toBe(0);
    const { cases } = parse(readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8'), {
      merge: true,
    }) as { cases: { virtual: { metadata: { labels: { app: string } } }[] }[] };
    expect(cases.map(({ virtual }) => virtual[0]?.metadata.labels.app)).toEqual(['web', 'api', 'db']);
  });

  test('--update fills in a case without expectations', async () => {
    const path = folderWith(oneCase(VIRTUAL_WEB));
    await capturedRun(['test', path, '--update']);
    const text = readFileSync(join(path, 'endpoint-syncer-test.yaml'), 'utf8');
    expect(text).toContain('name: web-x-shop-x-vc');
    expect(text).not.toContain('vcluster.loft.sh/');
    expect((await capturedRun(['test', path])).code).toBe(0);
  });
});
