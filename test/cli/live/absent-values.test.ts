/** What is absent is absent in what the commands on both clusters print: no `null`, `undefined` or `[object Object]` stands for it. */

import { expect, test } from 'vitest';
import { textAt, type JsonObject } from '../../../src/base/json.ts';
import { newEmbeddedWorld } from '../../scenarios/embedded-world.ts';
import type { World } from '../../scenarios/world.ts';
import { capturedRun } from '../captured-run.ts';
import { LACKING_OBJECTS, linesThatStandForNothing } from '../output/lacking-objects.ts';

const PATHS: Readonly<Record<string, string>> = {
  Endpoints: '/api/v1/namespaces/default/endpoints',
  Service: '/api/v1/namespaces/default/services',
  EndpointSlice: '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
};

/** One deletes what exists, one what is missing, and one fails on what is missing. */
const PATCHES = [
  { path: 'metadata.annotations["example.com/gone"]', expression: 'valueExists ? value : null' },
  { path: 'subsets[*].addresses[*].hostname', expression: 'value === "db-0" ? value : null' },
  { path: 'metadata.labels.app', expression: 'value.toUpperCase()' },
];

const CONFIG = {
  endpointSyncer: { services: 'sync', patches: { missingPaths: 'create' } },
  sync: { toHost: { endpoints: { patches: PATCHES } } },
};

async function create({ virtual }: World, object: JsonObject): Promise<boolean> {
  const metadata = { ...(object['metadata'] as JsonObject), namespace: 'default' };
  const path = PATHS[textAt(object, 'kind')] ?? '';
  return (await virtual.request('POST', path, { ...object, metadata })).status === 201;
}

/** Fields of an explanation as JSON or YAML, which say by null that there is none: none of an object, at these depths. */
const SAID =
  /^ {2}"lease": null|^lease: null|^ {8}"(?:error|nearest)": null|^ {6}(?:error|nearest): null|^ {10,12}"(?:before|after)": null|^ {6,10}(?:- )?(?:before|after): null$/u;
/** What the configuration says, and the error of an expression in V8's words. */
const isQuoted = (line: string): boolean =>
  PATCHES.some(({ expression }) => line.includes(expression)) ||
  line.includes('Cannot read properties of undefined');

async function linesOf(config: string, ...args: string[]): Promise<string[]> {
  const { out, err } = await capturedRun([...args, '--config', config]);
  return linesThatStandForNothing(`${out}\n${err}`)
    .filter((line) => !SAID.test(line) && !isQuoted(line))
    .map((line) => `${args.join(' ')}: ${line}`);
}

async function everyCommand(config: string, objects: readonly JsonObject[]): Promise<string[]> {
  const found = await linesOf(config, 'diff');
  for (const format of ['table', 'wide', 'json', 'yaml', 'name'])
    found.push(...(await linesOf(config, 'status', '--all', '-o', format)));
  for (const object of objects) {
    const explain = ['explain', `default/${textAt(object, 'metadata', 'name')}`];
    for (const format of ['text', 'json', 'yaml'])
      found.push(...(await linesOf(config, ...explain, '-k', textAt(object, 'kind'), '-o', format)));
  }
  return found;
}

test('before the first sync, and after it', { timeout: 120_000 }, async () => {
  await using world = await newEmbeddedWorld();
  const some = LACKING_OBJECTS.filter((_, at) => at % 8 === 0);
  const isCreated = await Promise.all(some.map((object) => create(world, object)));
  const created = some.filter((_, at) => isCreated[at]);
  expect(created.length).toBeGreaterThan(8);
  const config = world.writeConfig(world.configuration({ config: CONFIG }, 0));
  // One of each kind: a command takes half a second.
  const few = [...Map.groupBy(created, ({ kind }) => kind).values()].flatMap((of) => of.slice(-1));
  expect(few).toHaveLength(3);
  expect(await everyCommand(config, few)).toEqual([]);
  const daemon = await world.startSync({ config: CONFIG });
  await world.settle(daemon);
  expect(await everyCommand(config, few)).toEqual([]);
});
