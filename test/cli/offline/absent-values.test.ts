/** What is absent is absent in what the offline commands print: no `null`, `undefined` or `[object Object]` stands for it. */

import { expect, test } from 'vitest';
import { isJsonObject, textAt, type JsonObject } from '../../../src/base/json.ts';
import { testFolder } from '../../support/test-folder.ts';
import { capturedRun } from '../captured-run.ts';
import { LACKING_OBJECTS as OBJECTS, linesThatStandForNothing } from '../output/lacking-objects.ts';

const folder = testFolder();
function write(name: string, value: unknown): string {
  return folder.write(name, JSON.stringify(value));
}

/** As a copy of an object of the virtual namespace `default`, so that `--reverse` knows its name. */
function asCopy(object: JsonObject): JsonObject {
  const metadata = object['metadata'] as JsonObject; // of the corpus
  const [name, kind] = [textAt(object, 'metadata', 'name'), textAt(object, 'kind')];
  const [version = '', group = ''] = textAt(object, 'apiVersion').split('/').toReversed();
  return {
    ...object,
    metadata: {
      ...metadata,
      namespace: 'team-a',
      name: `${name}-x-default-x-vc`,
      labels: {
        ...(isJsonObject(metadata['labels']) && metadata['labels']),
        'vcluster.loft.sh/managed-by': 'vc',
        'vcluster.loft.sh/namespace': 'default',
      },
      annotations: {
        'vcluster.loft.sh/object-name': name,
        'vcluster.loft.sh/object-namespace': 'default',
        'vcluster.loft.sh/object-uid': 'u',
        'vcluster.loft.sh/object-kind': `${group}/${version}, Kind=${kind}`,
        'vcluster.loft.sh/object-host-name': `${name}-x-default-x-vc`,
        'vcluster.loft.sh/object-host-namespace': 'team-a',
      },
    },
  };
}

test('the corpus lacks many members', () => {
  expect(OBJECTS.length).toBeGreaterThan(80);
});

test('render, in both directions, with and without what exists on the other side', async () => {
  const config = write('config.yaml', {
    endpointSyncer: { name: 'vc', services: 'sync', host: { namespace: 'team-a' } },
  });
  const listOf = (name: string, items: readonly JsonObject[]): string =>
    write(name, { apiVersion: 'v1', kind: 'List', items });
  const some = OBJECTS.filter((_, at) => at % 8 === 0);
  const [virtual, host] = [listOf('virtual.json', some), listOf('host.json', some.map(asCopy))];
  const hostAlone = listOf('alone.json', OBJECTS.map(asCopy));
  const found: string[] = [];
  for (const args of [
    ['-f', virtual],
    ['-f', virtual, '--host', host],
    ['-f', hostAlone, '--reverse'],
    ['-f', host, '--reverse', '--virtual', virtual],
  ]) {
    const { out, err } = await capturedRun(['render', '--config', config, ...args]);
    expect(out).toContain('web-0');
    found.push(...linesThatStandForNothing(`${out}\n${err}`));
  }
  expect(found).toEqual([]);
});

test('patch, with patches that delete', async () => {
  const patches = write('patches.yaml', [
    { path: 'metadata.annotations["example.com/owner"]', expression: 'value?.missing' },
    { path: 'metadata.labels.app', expression: 'value === undefined ? value : null' },
  ]);
  const found: string[] = [];
  for (const object of OBJECTS.filter((_, at) => at % 40 === 0)) {
    const args = ['patch', '--patches', patches, '-f', write('one.json', object)];
    const { code, out } = await capturedRun(args);
    expect(code).toBe(0);
    found.push(...linesThatStandForNothing(out));
  }
  expect(found).toEqual([]);
});
