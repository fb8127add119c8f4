/** The files that a changed Endpoints passes in the daemon: those in ARCHITECTURE.md, found by what runs. */

import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { documentedFiles, filesThatRun } from '../support/files-that-run.ts';
import { eventually } from '../support/eventually.ts';

const KEY = 'default/web';
/**
 * The embedded clusters of this test run in this process, too: the rest of `kube` is also theirs. Metrics ask the clock of the daemon, which is no step
 * of the route either.
 */
const ENGINE = /^(?:expressions\/|syncer\/(?!metrics\/|run$)|kube\/(?:client|informer)\/|kube\/work-queue)/u;

/** One is evaluated in the daemon, the other in the sandbox, which alone evaluates loops. */
const PATCHES = [
  { path: 'metadata.annotations["example.com/short"]', expression: '"a-" + value' },
  { path: 'metadata.annotations["example.com/long"]', expression: 'for (;;) { break; } "b-" + value' },
];

async function filesThatRunWith(patches: JsonObject[]): Promise<readonly string[]> {
  await using world = await newEmbeddedWorld();
  await world.createVirtual(KEY, { annotations: { 'example.com/short': '0', 'example.com/long': '0' } });
  const daemon = await world.startSync({
    config: {
      sync: { toHost: { endpoints: { patches } } },
      endpointSyncer: { sandbox: { localEvaluation: true } },
    },
  });
  await world.whenCopy(KEY);
  // Until then the sync looks every 50 ms whether it is idle. What runs later runs every 10 s.
  await daemon.whenLogged(/^first pass complete$/u);
  const syncs = (): number => daemon.log.filter(({ msg }) => msg === 'synced').length;
  let value = 0;
  const run = await filesThatRun(async () => {
    const before = syncs();
    value += 1;
    const annotations = { 'example.com/short': String(value), 'example.com/long': String(value) };
    await world.mergeVirtual(KEY, { metadata: { annotations } });
    const isCopied = ({ metadata }: KubeObject) =>
      metadata.annotations?.['example.com/long']?.endsWith(String(value)) === true;
    await world.whenCopy(KEY, isCopied);
    await eventually(syncs, (count) => count > before, { what: 'the line of the log' });
  });
  return [...run].filter((file) => ENGINE.test(file)).toSorted();
}

const documented = documentedFiles('The files that a changed Endpoints passes');

test('are the documented ones', async () => {
  expect(await filesThatRunWith(PATCHES)).toEqual([...documented].toSorted());
});

test('are at most 40 of them without a patch', async () => {
  const passed = await filesThatRunWith([]);
  expect(passed.filter((file) => !documented.has(file))).toEqual([]);
  expect(passed.length).toBeLessThanOrEqual(40);
});
