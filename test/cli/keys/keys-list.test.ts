/** `keys list` and `keys get`: columns, formats, selectors and order. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/base/json.ts';
import { KEYS_PATH, startComposed, type Composed } from '../../access-keys/composed-api.ts';
import { keys as run } from './keys-setup.ts';
import { eventually } from '../../support/eventually.ts';
import { kubeconfigText } from './kubeconfig-text.ts';
import { testFolder } from '../../support/test-folder.ts';

const { write } = testFolder();
let api: Composed;
beforeAll(async () => {
  api = await startComposed();
});
afterAll(() => api[Symbol.asyncDispose]());

describe('get and list', () => {
  let kubeconfig: string[];
  beforeAll(async () => {
    const { text } = await api.key('root', { user: 'root', groups: ['platform:admins'] });
    const file = write('admin.kubeconfig', kubeconfigText(api, { current: text }), 0o600);
    kubeconfig = ['--kubeconfig', file];
    const day = 86_400;
    await api.key('soon', { user: 'ann', ttl: day });
    await api.key('later', { user: 'ann', ttl: 8 * day });
    await api.key('idle', { team: 'blue', ttl: 2 * day, ttlAfterLastActivity: true });
    await api.key('ended', { team: 'blue', ttl: 1 });
    const expired = async (): Promise<string> =>
      (await run('list', ...kubeconfig, '--expired', '-o', 'name')).out;
    await eventually(expired, (out) => out === 'ended\n', { what: 'the end of the key' });
  });
  const names = async (...args: string[]): Promise<string[]> => {
    const listed = await run('list', ...kubeconfig, '-o', 'name', ...args);
    const table = await run('list', ...kubeconfig, ...args);
    const found = listed.out.trim().split('\n').filter(Boolean);
    expect(
      table.out
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split(' ')[0]),
    ).toEqual(found);
    return found;
  };

  test('get prints one key, with the connection of a kubeconfig', async () => {
    const shown = await run('get', 'soon', ...kubeconfig);
    expect(shown.out).toMatch(/^NAME .*\nsoon +soon +user\/ann /u);
    expect((await run('get', 'soon', ...kubeconfig, '-o', 'wide')).out).toContain('LAST ACTIVITY');
    expect((await run('get', 'soon', ...kubeconfig, '-o', 'name')).out).toBe('soon\n');
    const yaml = await run('get', 'soon', ...kubeconfig, '-o', 'yaml');
    expect(parse(yaml.out)).toMatchObject({ kind: 'OwnedAccessKey', spec: { ttl: 86_400 } });
    expect(JSON.parse((await run('get', 'soon', ...kubeconfig, '-o', 'json')).out)).toEqual(parse(yaml.out));
    expect((await run('get', 'soon', ...kubeconfig, '-o', 'jsonpath={.spec.user} {.spec.ttl}')).out).toBe(
      'ann 86400',
    );
    expect((await run('get', 'missing', ...kubeconfig)).code).toBe(1);
  });

  test.each<[string[], string[]]>([
    [
      ['--expiring', '7d'],
      ['idle', 'soon'],
    ],
    [
      ['--expiring', '9d', '--sort-by', 'expires'],
      ['soon', 'idle', 'later'],
    ],
    [['--expiring', '1m'], []],
    [['--expired'], ['ended']],
    [['--expired', '--field-selector', 'spec.user=ann'], []],
    [
      ['--sort-by', 'expires', '--field-selector', 'spec.user=ann'],
      ['soon', 'later'],
    ],
    [
      ['--sort-by', '.spec.ttl', '--field-selector', 'spec.user=ann'],
      ['soon', 'later'],
    ],
    [
      ['--sort-by', 'subject', '--expiring', '30d'],
      ['later', 'soon', 'idle'],
    ],
    [['--field-selector', 'spec.team=blue'], ['idle']],
    [['--field-selector', 'spec.team=blue,spec.user=ann'], []],
    [['--field-selector', 'spec.user!=ann', '--expiring', '7d'], ['idle']],
  ])('list %j: %j', async (args, expected) => {
    expect(await names(...args)).toEqual(expected);
  });

  test('json, yaml and jsonpath print the list of the API', async () => {
    const ann = [...kubeconfig, '--field-selector', 'spec.user=ann'];
    const path = await run('list', ...ann, '-o', 'jsonpath={.items[*].metadata.name}{"\\n"}');
    expect(path.out).toBe('later soon\n');
    const json = JSON.parse((await run('list', ...ann, '-o', 'json')).out) as JsonObject;
    expect(json).toMatchObject({ kind: 'OwnedAccessKeyList', items: [{ spec: {} }, { spec: {} }] });
    expect(parse((await run('list', ...ann, '-o', 'yaml')).out)).toEqual(json);
    expect((await run('list', ...kubeconfig, '-o', 'jsonpath={.items')).code).toBe(2);
    expect((await run('list', ...kubeconfig, '-o', 'xml')).code).toBe(2);
  });

  test('the error names an unsupported field', async () => {
    const { code, err } = await run('list', ...kubeconfig, '--field-selector', 'spec.ttl=1');
    expect([code, err]).toEqual([1, expect.stringContaining('spec.ttl')]);
  });

  test('a field to sort by that does not exist is an error', async () => {
    const typo = await run('list', ...kubeconfig, '--sort-by', 'expiry');
    expect([typo.code, typo.err]).toEqual([
      2,
      expect.stringContaining('one of created, expires, last-activity, name, subject'),
    ]);
    for (const field of ['.spec.tl', '{.spec.tl}', 'spec.tl']) {
      const { code, out, err } = await run('list', ...kubeconfig, '--sort-by', field);
      expect([code, out, err]).toEqual([1, '', expect.stringContaining('none of the keys has this field')]);
    }
    const none = [...kubeconfig, '--field-selector', 'spec.user=zoe', '--sort-by', '.spec.tl'];
    expect((await run('list', ...none)).code).toBe(0);
    const unused = await run('list', ...kubeconfig, '--sort-by', 'last-activity', '-o', 'name');
    expect(unused.code).toBe(0);
  });

  test('a watch follows the keys of one user', async () => {
    await using watch = await api.administrator.watch(`${KEYS_PATH}?watch=1&fieldSelector=spec.user%3Dann`);
    expect((await watch.summary(2)).toSorted()).toEqual(['ADDED later', 'ADDED soon']);
  });
});
