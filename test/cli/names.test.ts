/** The command `names`: both directions, formats, kinds and exit codes. */

import { describe, expect, test } from 'vitest';
import { hostNameShort } from '../../src/syncer/translate/names.ts';
import { capturedRun, type CapturedRun } from './captured-run.ts';
import { testFolder } from '../support/test-folder.ts';

const { write } = testFolder();
const MAPPED = write(
  'mapped.yaml',
  [
    'sync: {toHost: {namespaces: {enabled: true, mappingsOnly: true, mappings: {byName: {"team-*": "h-team-*", solo: h-team-solo}}}}}',
    'endpointSyncer: {name: vc, host: {namespace: control}}',
  ].join('\n'),
);
const LEGACY = write(
  'legacy.yaml',
  'experimental: {multiNamespaceMode: {enabled: true}}\nendpointSyncer: {name: suffix, host: {namespace: test}}\n',
);

const FLAGS = ['--name', 'suffix', '--host-namespace', 'test'];

const run = (...args: string[]): Promise<CapturedRun> => capturedRun(['names', ...args]);

async function json(...args: string[]): Promise<unknown> {
  const { out } = await run(...args, '-o', 'json');
  return JSON.parse(out);
}

describe('names', () => {
  test('prints JSON of the documented shape', async () => {
    expect(await json('test/test', '--kind', 'pods', ...FLAGS)).toEqual([
      {
        kind: 'Pod',
        virtual: { namespace: 'test', name: 'test' },
        host: { namespace: 'test', name: 'test-x-test-x-suffix' },
        shortName: 'v2po30bbi7atc1',
      },
    ]);
  });

  test('cluster-scoped kinds take a name without namespace, in both directions', async () => {
    const row = {
      kind: 'PriorityClass',
      virtual: { namespace: '', name: 'stuff' },
      host: { namespace: '', name: 'vcluster-stuff-x-test-x-suffix' },
      shortName: '',
    };
    expect(await json('stuff', '--kind', 'PriorityClass', ...FLAGS)).toEqual([row]);
    expect(await json('vcluster-stuff-x-test-x-suffix', '-r', '--kind', 'priorityclass', ...FLAGS)).toEqual([
      row,
    ]);
    expect((await run('system:x', '--kind', 'ClusterRole', ...FLAGS)).code).toBe(0);
  });

  test.each([
    [['shop/web', '-o', 'name'], 'test/web-x-shop-x-suffix\n'],
    [['test/web-x-shop-x-suffix', '--reverse', '-o', 'name'], 'shop/web\n'],
    [['shop/web', '-o', 'jsonpath={[*].host.name}'], 'web-x-shop-x-suffix'],
    [['shop/web', '-o', 'yaml'], '- kind: Endpoints\n  virtual:\n    namespace: shop\n'],
  ])('%j', async (args, text) => {
    const { code, out } = await run(...args, ...FLAGS);
    expect([code, out.slice(0, text.length)]).toEqual([0, text]);
  });

  test('the scope of an unknown kind follows from the form of the name', async () => {
    expect(await json('a/b', 'c', '--kind', 'Gadget', ...FLAGS)).toMatchObject([
      { kind: 'Gadget', host: { namespace: 'test', name: 'b-x-a-x-suffix' } },
      { kind: 'Gadget', host: { namespace: '', name: 'vcluster-c-x-test-x-suffix' } },
    ]);
  });

  test('notes a kind that is neither known nor configured', async () => {
    const notes = async (...args: string[]): Promise<string> => (await run('a/b', ...args, ...FLAGS)).err;
    expect(await notes('--kind', 'Secrt')).toContain(
      'note: kind "Secrt" is not known here, did you mean "Secret"?\n',
    );
    expect(await notes('--kind', 'gadgets.example.com')).toContain('is treated as a custom resource\n');
    const file = write(
      'gadgets.yaml',
      'sync: {toHost: {customResources: {gadgets.example.com: {enabled: true}}}}\nendpointSyncer: {name: a}\n',
    );
    expect(await notes('--kind', 'Gadget', '--config', file)).not.toContain('not known');
  });

  test('--reverse prints every virtual name', async () => {
    expect(await json('test/a-x-b-x-c-x-suffix', '--reverse', ...FLAGS)).toMatchObject([
      { virtual: { namespace: 'b-x-c', name: 'a' } },
      { virtual: { namespace: 'c', name: 'a-x-b' } },
    ]);
    expect(await json('a-x-b-x-suffix', '--reverse', ...FLAGS)).toMatchObject([
      { virtual: { namespace: 'b', name: 'a' }, host: { namespace: 'test' } },
    ]);
  });

  test.each([
    ['nope', 'test/nope: no virtual name translates to it'],
    ['elsewhere/a-x-b-x-suffix', 'objects of virtual cluster "suffix" are not in this namespace'],
    ['very-long-pod-name-that-definitely-exceeds-63-chars--125f8da0fa', 'long names are truncated'],
  ])('reverse of %s has no answer, and says why', async (name, message) => {
    const { code, out, err } = await run(name, '--reverse', '-o', 'json', ...FLAGS);
    expect([code, out]).toEqual([1, '[]\n']);
    expect(err).toContain(message);
  });

  test('the configuration maps namespaces', async () => {
    const config = ['--config', MAPPED];
    expect(await json('team-a/web', ...config)).toMatchObject([
      { host: { namespace: 'h-team-a', name: 'web' }, shortName: 'web' },
    ]);
    expect(await json('team-a', '--kind', 'Namespace', ...config)).toMatchObject([
      { host: { name: 'h-team-a' } },
    ]);
    expect(await json('h-team-solo', '--kind', 'Namespace', '-r', ...config)).toMatchObject([
      { virtual: { name: 'solo' } },
      { virtual: { name: 'team-solo' } },
    ]);
    const { code, out, err } = await run('other/web', 'team-b/web', ...config);
    expect(code).toBe(1);
    expect(out).toContain('h-team-b/web');
    expect(err).toContain('error: other/web: namespace "other" has no entry');
  });

  test('hashed namespaces cannot be reversed', async () => {
    const config = ['--config', LEGACY];
    expect(await json('test/web', ...config)).toMatchObject([
      { host: { namespace: 'vcluster-9f86d081-ef5e1ae6', name: 'web' } },
    ]);
    const { code, err } = await run('vcluster-9f86d081-ef5e1ae6/web', '--reverse', ...config);
    expect(code).toBe(1);
    expect(err).toContain('namespaces are hashed in this mode');
  });

  test('flags take precedence over the file', async () => {
    const config = ['--config', LEGACY, '--name', 'other'];
    expect(JSON.stringify(await json('test/web', ...config))).not.toContain('ef5e1ae6');
  });

  test('notes that default/kubernetes is never synced', async () => {
    expect((await run('default/kubernetes', ...FLAGS)).err).toContain('never synced');
    expect((await run('default/kubernetes', '--kind', 'Secret', ...FLAGS)).err).not.toContain('never synced');
  });

  test('notes a reference name that differs from the host name', async () => {
    const short = hostNameShort('tls', 'shop', 'suffix');
    expect((await run('shop/tls', '--kind', 'Secret', ...FLAGS)).err).toBe(
      `note: shop/tls: a reference patch writes "${short}"; "tls-x-shop-x-suffix" is the name of the copy that vCluster syncs\n`,
    );
    expect((await run('shop/web', ...FLAGS)).err).toBe('');
    expect((await run('shop/web', '--kind', 'Pod', ...FLAGS)).err).toBe('');
  });

  test.each<[string[], string]>([
    [['foo', ...FLAGS], '"foo": Endpoints objects are namespaced, write NAMESPACE/NAME'],
    [['a/b/c', ...FLAGS], '"a/b/c": Endpoints objects are namespaced'],
    [['a/b', '--kind', 'Node', ...FLAGS], 'Node objects are cluster-scoped, write NAME without a namespace'],
    [['A/b', ...FLAGS], '"A" is not the name of a namespace'],
    [['a/', ...FLAGS], '"" is not the name of an object'],
    [['a/b_c', 'ok/ok', ...FLAGS], '"b_c" is not the name of an object'],
    [['a/b..c', ...FLAGS], '"b..c" is not the name of an object'],
    [[`a/${'b'.repeat(254)}`, ...FLAGS], 'is not the name of an object'],
    [['a/b', '--kind', '', ...FLAGS], '--kind must be the name of a kind'],
    [['a/b', '--kind', 'a b', ...FLAGS], '--kind must be the name of a kind'],
    [['a/b', '--host-namespace', 'test'], '--name'],
    [['a/b', '--name', 'x'], 'set --host-namespace'],
    [['a/b', '-o', 'xml', ...FLAGS], 'Allowed choices'],
    [[...FLAGS], "missing required argument 'names'"],
  ])('%j is refused', async (args, message) => {
    const { code, out, err } = await run(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  test('an invalid configuration prints what validate prints', async () => {
    const { code, err } = await run('a/b', '--config', write('broken.yaml', 'endpointSyncer: {nam: vc}\n'));
    expect(code).toBe(2);
    expect(err).toContain('broken.yaml:1:');
  });
});
