/** What the commands say about results of expressions that cannot be written. */

import { describe, expect, test } from 'vitest';
import { capturedRun } from '../captured-run.ts';
import { testFolder } from '../../support/test-folder.ts';
import { worldFile } from '../../support/world-file.ts';

const { write } = testFolder();

async function rendered(config: string, object: string): Promise<{ code: number; out: string; err: string }> {
  return capturedRun(['render', '--config', config, '-f', object]);
}

describe('a result that JSON cannot hold', () => {
  test('a Map in the place of all annotations is an error of its patch', async () => {
    const { code, err } = await rendered(worldFile('field/f1-map.yaml'), worldFile('field/f1-object.yaml'));
    expect(code).toBe(1);
    expect(err).toContain(
      'failed Endpoints shop/web: patches[0] at metadata.annotations: the result is a Map: write Object.fromEntries(…) around it',
    );
  });

  test('validate --strict finds the Map, and not the dates', async () => {
    const map = await capturedRun(['validate', '--strict', worldFile('field/f1-map.yaml')]);
    expect([map.code, map.out]).toEqual([2, expect.stringContaining('the result is a Map')]);
    expect(await capturedRun(['validate', '--strict', worldFile('field/f1-date.yaml')])).toMatchObject({
      code: 0,
    });
  });

  test('a date as HTTP writes it becomes ISO 8601, one that is none an error of its path alone', async () => {
    const date = await rendered(worldFile('field/f1-date.yaml'), worldFile('field/f1-object.yaml'));
    expect(date.code).toBe(0);
    expect(date.out).toContain('example.com/at: "2026-11-28T10:00:00.000Z"');
    const object = write(
      'local.yaml',
      `apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop, annotations: {example.com/at: 2026-11-28 10:00, example.com/owner: checkout}}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
`,
    );
    const local = await rendered(worldFile('field/f1-date.yaml'), object);
    expect(local.code).toBe(1);
    expect(local.err).toContain('at metadata.annotations."example.com/at": the result is an invalid Date');
    expect(local.out).toContain('example.com/owner: checkout');
  });

  test('eval and test say the same', async () => {
    const evaluated = await capturedRun(['eval', 'new Date(value)', '--value', '"2026-11-28 10:00"']);
    expect(evaluated).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('result: the result is an invalid Date') as string,
    });
    const cases = write(
      'map.endpoint-syncer-test.yaml',
      `config: ${worldFile('field/f1-map.yaml')}
cases:
  - name: the annotations stay
    virtual: [${worldFile('field/f1-object.yaml')}]
    expect: {errors: [{patch: 0, contains: the result is a Map}]}
`,
    );
    expect(await capturedRun(['test', cases])).toMatchObject({ code: 0 });
  });
});

test('each patch that fails is named, in render and in test', async () => {
  const config = write(
    'two.yaml',
    `sync:
  toHost:
    endpoints:
      patches:
        - {path: 'metadata.annotations["example.com/owner"]', expression: 'JSON.parse(value).team'}
        - {path: 'metadata.annotations["example.com/internal"]', expression: '({})'}
endpointSyncer: {name: vc, host: {namespace: team-a}}
`,
  );
  const { code, err, out } = await rendered(config, worldFile('field/f1-object.yaml'));
  expect(code).toBe(1);
  expect(err).toMatch(/^failed Endpoints shop\/web: patches\[0\] at .*SyntaxError/mu);
  expect(err).toMatch(/^patches\[1\] at metadata.annotations."example.com\/internal": must be a string/mu);
  expect(out).toContain('example.com/at: Sat, 28 Nov 2026 10:00:00 GMT');
  const cases = write(
    'two.endpoint-syncer-test.yaml',
    `config: ${config}
cases:
  - name: both
    virtual: [${worldFile('field/f1-object.yaml')}]
    expect: {errors: [{patch: 0}, {patch: 1, contains: must be a string}]}
`,
  );
  expect(await capturedRun(['test', cases])).toMatchObject({ code: 0 });
});

test.each(['render', 'patch'])('%s judges as the newest version of Kubernetes', async (command) => {
  const config = write(
    'leading-zero.yaml',
    `sync:
  toHost:
    endpoints:
      enabled: true
      patches: [{path: 'subsets[*].addresses[*].ip', expression: '"010.0.0.1"'}]
endpointSyncer: {name: a, host: {namespace: team-a}}
`,
  );
  const object = write(
    'endpoints.yaml',
    'apiVersion: v1\nkind: Endpoints\nmetadata: {name: web, namespace: shop}\nsubsets: [{addresses: [{ip: 192.0.2.1}]}]\n',
  );
  const { code, err } = await capturedRun([command, '--config', config, '-f', object]);
  expect(code).toBe(1);
  expect(err).toContain('patches[0] at subsets.0.addresses.0.ip: must not have leading 0s, not "010.0.0.1"');
});
