/** Every series of an API server exists from the start, under the names of a kube-apiserver, and counts what is served. */

import { expect, test } from 'vitest';
import { ApiServerSeries, measuredStore } from '../../src/apiserver/metrics.ts';
import { MemoryStore } from '../../src/apiserver/storage/revisioned-store.ts';
import { SeriesRegistry } from '../../src/base/metrics/series.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { KEYS } from './key-requests.ts';
import { accessKeyTable } from './test-kinds.ts';
import { startTestServer } from './test-server.ts';

const RESOURCE = 'group="management.platform.sh",version="v1",resource="ownedaccesskeys",subresource=""';

function labels(verb: string, scope: string, code?: number): string {
  const last = code === undefined ? '' : `,code="${code}"`;
  return `{verb="${verb}",${RESOURCE},scope="${scope}",dry_run="",component="apiserver"${last}}`;
}

async function valuesOf(registry: SeriesRegistry): Promise<Map<string, number>> {
  const lines = (await registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  );
}

test('the series of a kind are at zero before its first request', async () => {
  const registry = new SeriesRegistry();
  new ApiServerSeries(registry, accessKeyTable());
  const values = await valuesOf(registry);
  expect([
    values.get(`apiserver_request_total${labels('GET', 'resource', 200)}`),
    values.get(`apiserver_request_total${labels('POST', 'cluster', 201)}`),
    values.get(`apiserver_request_duration_seconds_count${labels('LIST', 'cluster')}`),
    values.get('apiserver_current_inflight_requests{request_kind="mutating"}'),
    values.get('apiserver_current_inflight_requests{request_kind="readOnly"}'),
    values.get('authentication_attempts{result="failure"}'),
  ]).toEqual([0, 0, 0, 0, 0, 0]);
});

test('requests are counted by verb, resource and status, and a path that is not served gives no label', async () => {
  const registry = new SeriesRegistry();
  const table = accessKeyTable();
  await using api = await startTestServer({ table, metrics: new ApiServerSeries(registry, table) });
  const { client } = api;
  await client.send({ method: 'POST', path: KEYS, body: { metadata: { name: 'k' }, spec: {} } });
  const paths = [`${KEYS}/k`, `${KEYS}/missing`, `${KEYS}/k/subresource-of-a-client`];
  for (const path of [...paths, '/apis/a.example/v1/secrets-of-a-client'])
    await client.send({ method: 'GET', path });
  const values = await valuesOf(registry);
  expect([
    values.get(`apiserver_request_total${labels('POST', 'cluster', 201)}`),
    values.get(`apiserver_request_total${labels('GET', 'resource', 200)}`),
    values.get(`apiserver_request_total${labels('GET', 'resource', 404)}`),
    values.get(`apiserver_request_duration_seconds_count${labels('GET', 'resource')}`),
    values.get('authentication_attempts{result="success"}'),
    values.get('apiserver_current_inflight_requests{request_kind="readOnly"}'),
  ]).toEqual([1, 1, 1, 2, 5, 0]);
  expect(await registry.text()).not.toContain('of-a-client');
});

test('the store reports the latency of its requests', async () => {
  const registry = new SeriesRegistry();
  await using store = measuredStore(new MemoryStore(), new FakeClock(), registry);
  const name = 'endpoint_syncer_store_request_duration_seconds_count{operation="get"}';
  expect((await valuesOf(registry)).get(name)).toBe(0);
  await store.get({ resource: 'r', namespace: '', name: 'n' });
  expect((await valuesOf(registry)).get(name)).toBe(1);
});
