/** What the demo changes by itself never contradicts the patches, whatever the user makes of them. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/load.ts';
import {
  ActivityLogger,
  DEMO_HOST_NAMESPACE,
  DEMO_NAMESPACE,
  DEMO_OWNER,
  DEMO_SAMPLES,
  DEMO_SETTINGS,
  demoConfig,
} from '../../src/showcase/demo-activity.ts';
import { DemoChanges } from '../../src/showcase/demo-changes.ts';
import { programParts } from '../../src/cli/installation.ts';
import { asJson, CONFIG_MAPS, ENDPOINTS, NAMESPACES, SERVICES } from '../../src/kube/object.ts';
import { mergePatch } from '../../src/base/json.ts';
import type { WatchClient } from '../../src/kube/types.ts';
import { startEmbeddedCluster } from '../../src/embedded-cluster/embedded-cluster.ts';
import { type Daemon, startDaemon } from '../../src/syncer/run.ts';
import type { Config } from '../../src/syncer/config/config.ts';
import { testClient } from '../kube/test-client.ts';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/test-folder.ts';
import { capturedRun } from '../cli/captured-run.ts';

const { write } = testFolder();

const OWNER = `metadata.annotations["${DEMO_OWNER}"]`;
const HOSTNAME = 'subsets[*].addresses[*].hostname';
const TEAM = `value.startsWith("team-") ? value.slice(5) : value`;
const SQUAD = `value.startsWith("squad-") ? value.slice(6) : value`;

const PATCHES: Readonly<Record<string, readonly object[]>> = {
  'another prefix, in both directions': [
    { path: OWNER, expression: '"squad-" + value', reverseExpression: SQUAD },
  ],
  'another prefix, and the reverse of the old one': [
    { path: OWNER, expression: '"squad-" + value', reverseExpression: TEAM },
  ],
  'another prefix in the reverse alone': [
    { path: OWNER, expression: '"team-" + value', reverseExpression: SQUAD },
  ],
  'no reverse': [{ path: OWNER, expression: '"team-" + value' }],
  'the reverse alone': [{ path: OWNER, reverseExpression: 'value.trim()' }],
  'a constant': [{ path: OWNER, expression: '"a team"', reverseExpression: '"an owner"' }],
  'an expression that fails': [{ path: OWNER, expression: 'value.a.b' }],
  'a reverse that fails': [{ path: OWNER, expression: '"a" + value', reverseExpression: 'value.a.b' }],
  'an expression that removes it': [{ path: OWNER, expression: 'null' }],
  'host names of its own': [{ path: HOSTNAME, reverseExpression: '"one"' }],
  'all annotations': [{ path: 'metadata.annotations', expression: '({a: "b"})' }],
  none: [],
};

const ORIGINAL = { namespace: 'shop', name: 'db' };
const COPY = { namespace: DEMO_HOST_NAMESPACE, name: 'db-x-shop-x-demo' };
const SAMPLE = DEMO_SAMPLES[0] as (typeof DEMO_SAMPLES)[number]; // `shop/db`
const isThere = (): boolean => true;

/** With these, there is a change in every round. */
const ALWAYS = ['as they are', 'another prefix, in both directions', 'none'];

let daemon: Daemon;
let config: Config;
let file: string;
let virtual: WatchClient;
let host: WatchClient;
const undo = new AsyncDisposableStack();

beforeAll(async () => {
  const clusters = {
    virtual: undo.use(await startEmbeddedCluster({ name: 'virtual' })),
    host: undo.use(await startEmbeddedCluster({ name: 'host' })),
  };
  virtual = undo.use(testClient(clusters.virtual.url));
  host = undo.use(testClient(clusters.host.url));
  await host.create(NAMESPACES, { ...DEMO_NAMESPACE, metadata: { name: DEMO_HOST_NAMESPACE } });
  await virtual.create(NAMESPACES, DEMO_NAMESPACE);
  file = write(
    'demo.yaml',
    demoConfig({
      virtual: write('virtual.kubeconfig', clusters.virtual.kubeconfig),
      host: write('host.kubeconfig', clusters.host.kubeconfig),
    }),
  );
  ({ config } = await loadConfig({ file, env: {}, flags: {} }));
  const stop = new AbortController();
  undo.defer(() => stop.abort());
  daemon = await startDaemon({
    config,
    isDryRun: false,
    logger: new ActivityLogger(undefined),
    ...programParts(),
    signal: stop.signal,
    hasHostControllers: false,
  });
  undo.defer(() => daemon.stop());
  await virtual.create(CONFIG_MAPS, DEMO_SETTINGS);
  if (SAMPLE.service !== undefined) await virtual.create(SERVICES, SAMPLE.service);
});
afterAll(() => undo.disposeAsync());

test.each(Object.entries({ 'as they are': undefined, ...PATCHES }))('patches: %s', async (name, patches) => {
  const edited =
    patches === undefined ? [] : ['--set', `sync.toHost.endpoints.patches=${JSON.stringify(patches)}`];
  const sets = edited.slice(1);
  ({ config } = await loadConfig({ file, env: {}, flags: {}, sets }));
  await daemon.sync.reload(config);
  const created = await virtual.create(ENDPOINTS, SAMPLE.endpoints);
  const stateOf = async (): Promise<string> => {
    const { out } = await capturedRun([
      'status',
      '--config',
      file,
      ...edited,
      '-k',
      'Endpoints',
      '-o',
      'json',
    ]);
    const rows = JSON.parse(out) as { virtual: { name: string }; state: string }[];
    return rows.find((row) => row.virtual.name === 'db')?.state ?? 'none';
  };
  const rest = () => eventually(stateOf, (state) => ['synced', 'failed'].includes(state));
  await eventually(() => host.get(ENDPOINTS, COPY), isThere);
  await rest();

  await using changes = new DemoChanges({ clients: { virtual, host }, config: () => config });
  let made = 0;
  for (const round of [1, 2, 3]) {
    const edit = await changes.change(round);
    if (edit === undefined) continue;
    made += 1;
    await rest();
    const object = await (edit.cluster === 'host'
      ? host.get(ENDPOINTS, COPY)
      : virtual.get(ENDPOINTS, ORIGINAL));
    expect(asJson(object)).toEqual(mergePatch(asJson(object), edit.body));
  }
  expect(made).toBeGreaterThanOrEqual(ALWAYS.includes(name) ? 3 : 0);

  await virtual.delete(ENDPOINTS, ORIGINAL, { uid: created.metadata.uid ?? '' });
  await eventually(
    () => host.list(ENDPOINTS, { namespace: DEMO_HOST_NAMESPACE }),
    ({ items }) => items.length === 0,
  );
});
