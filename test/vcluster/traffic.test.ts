/** Traffic to the copies of a whole vCluster on its host, while they change hands: to the sidecar, and back. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { CHART } from '../e2e/deploy/helm.ts';
import { documentedBlocks } from '../e2e/documented-blocks.ts';
import { READERS, SliceReader, type ReaderName } from '../e2e/slice-reader.ts';
import { slice } from '../scenarios/endpoint-slices.ts';
import { endpoints, subset } from '../scenarios/objects.ts';
import { plain } from '../scenarios/services.ts';
import { eventually } from '../support/eventually.ts';
import { VclusterHost } from './host.ts';
import { TEAM_A, VCLUSTER } from './pod.ts';
import { WholeVcluster } from './vcluster.ts';

/** vCluster's defaults, and the values of the documentation, without its own sync. */
const ON: JsonObject = {};
const OFF = parse(documentedBlocks('deploy.md').get('vcluster-values.yaml') ?? '') as JsonObject; // our own page
const OUR_VALUES = {
  sidecar: true,
  vclusterConfigSecret: `vc-config-${VCLUSTER}`,
  config: { endpointSyncer: { name: VCLUSTER } },
};
const SYNC_RECORD = 'endpoint-syncer/last-synced';
const KINDS = ['Endpoints', 'EndpointSlice'] as const;
type Kind = (typeof KINDS)[number];

/** A Service without a selector, whose addresses a tenant writes, and who reads them on the host. */
interface Led {
  readonly name: string;
  readonly kind: Kind;
  readonly reader: ReaderName;
}

const LED: readonly Led[] = READERS.flatMap((reader) =>
  KINDS.map((kind) => ({ name: `${reader}-${kind}`.toLowerCase(), kind, reader })),
);

function hostKey({ name }: Led): [string, string] {
  return [TEAM_A.namespace, `${name}-x-default-x-${VCLUSTER}`];
}

function route(ip: string): string {
  return `${ip}:80`;
}

test('traffic to copies of a vCluster goes on through the hand-over to the sidecar, and reaches them after one back', async () => {
  await using resources = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-traffic-'));
  resources.defer(() => rmSync(folder, { recursive: true }));
  const host = resources.use(await VclusterHost.start());
  const vcluster = resources.use(await WholeVcluster.start(host, TEAM_A, ON));
  const virtual = resources.use(await vcluster.virtual());
  const readers = new Map<ReaderName, SliceReader>();
  for (const name of READERS)
    readers.set(
      name,
      resources.use(await SliceReader.start(name, host.access.kubeconfigPath, TEAM_A.namespace)),
    );
  const readerOf = ({ reader }: Led): SliceReader => {
    const found = readers.get(reader);
    if (found === undefined) throw new Error(`no reader ${reader}`);
    return found;
  };
  const whenLed = async (all: readonly Led[], ...ips: readonly string[]): Promise<void> => {
    for (const led of all) await readerOf(led).whenRoutes(hostKey(led), ips.map(route));
  };
  const setAddresses = async (...ips: readonly string[]): Promise<void> => {
    for (const { name, kind } of LED) {
      const content =
        kind === 'Endpoints'
          ? { subsets: [subset(...ips)] }
          : { endpoints: ips.map((ip) => ({ addresses: [ip], conditions: { ready: true } })) };
      await virtual.merge(kind, ['default', name], content);
    }
  };

  for (const { name, kind, reader } of LED) {
    const spec = reader === 'CoreDNS' ? { clusterIP: 'None' } : {};
    await virtual.create('Service', plain(`default/${name}`, { spec }));
    await virtual.create(
      kind,
      kind === 'Endpoints' ? endpoints(`default/${name}`) : slice(`default/${name}`, name),
    );
  }
  await whenLed(LED, '10.1.0.1');
  await setAddresses('10.1.0.1', '10.1.0.2');
  await whenLed(LED, '10.1.0.1', '10.1.0.2');

  await vcluster.install(OFF);
  writeFileSync(join(folder, 'ours.yaml'), stringify(OUR_VALUES));
  await vcluster.helm('install', 'syncer', CHART, `--values=${join(folder, 'ours.yaml')}`);
  const sidecar = await (await vcluster.startSidecar()).ready(120_000);
  for (const led of LED)
    await vcluster.host.when(
      led.kind,
      hostKey(led),
      ({ metadata }) => metadata.annotations?.[SYNC_RECORD] !== undefined,
    );
  await eventually(
    () => sidecar.isIdle(),
    (idle) => idle,
  );
  await setAddresses('10.1.0.1', '10.1.0.3');
  await whenLed(LED, '10.1.0.1', '10.1.0.3');

  const without = (led: Led): unknown => readerOf(led).statesWithout(hostKey(led), route('10.1.0.1'));
  expect(LED.map(without)).toEqual(LED.map(() => []));

  // vCluster itself, at each start, labels the copies of slices, mirrored ones too, with the name that their Service has in the virtual cluster:
  // CoreDNS has no address until the host's controller has made another mirrored slice, and none of a slice that a tenant wrote; kube-proxy keeps
  // what such a slice had before, so whether an address stays meanwhile depends on which of the two comes first.
  const back = LED.filter(({ kind }) => kind === 'Endpoints');
  await sidecar.stop();
  await vcluster.install(ON);
  await setAddresses('10.1.0.1', '10.1.0.4');
  for (const led of back)
    await eventually(
      () => readerOf(led).routesOf(hostKey(led)).at(-1) ?? [],
      (now) => now.includes(route('10.1.0.1')) && now.includes(route('10.1.0.4')),
    );
  for (const { name, kind } of back) await virtual.delete(kind, 'default', name);
  await whenLed(back.filter(({ reader }) => reader === 'CoreDNS'));
});
