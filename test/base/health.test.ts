/** Responses to probes and operators. */

import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import {
  startHealthServer,
  type Checks,
  type HealthServer,
  type HealthServerOptions,
} from '../../src/base/health.ts';
import { silentLogger } from '../../src/base/logger.ts';

const METRICS = { text: async () => 'a_total 1\n', contentType: 'text/plain; version=0.0.4' };

function start(
  readyChecks: Checks = {},
  metrics = METRICS,
  options: Partial<HealthServerOptions> = {},
): Promise<HealthServer> {
  const healthChecks = { ping: () => ({ isOk: true }) };
  return startHealthServer({
    bindAddress: '127.0.0.1:0',
    healthChecks,
    readyChecks: () => readyChecks,
    metrics,
    logger: silentLogger,
    ...options,
  });
}

async function get(
  url: string,
  init: RequestInit = {},
): Promise<{ status: number; body: string; type: string | null }> {
  const response = await fetch(url, init);
  return { status: response.status, body: await response.text(), type: response.headers.get('content-type') };
}

function hasIPv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  );
}

describe('the health server', () => {
  test('responds with ok when every check passes', async () => {
    await using server = await start({ cache: () => ({ isOk: true, detail: '5 objects' }) });
    const plain = 'text/plain; charset=utf-8';
    expect(await get(`${server.url}/healthz`)).toEqual({ status: 200, body: 'ok\n', type: plain });
    expect(await get(`${server.url}/readyz`)).toEqual({ status: 200, body: 'ok\n', type: plain });
    expect((await get(`${server.url}/readyz?verbose`)).body).toBe(
      '[+]cache ok: 5 objects\nreadyz check passed\n',
    );
  });

  test('names the failed check and the reason, also without ?verbose', async () => {
    await using server = await start({
      first: () => ({ isOk: true }),
      second: () => ({ isOk: false, detail: 'not synced' }),
      third: () => {
        throw new Error('broken');
      },
    });
    const { status, body } = await get(`${server.url}/readyz`);
    expect(status).toBe(503);
    expect(body).toBe(
      '[+]first ok\n[-]second failed: not synced\n[-]third failed: broken\nreadyz check failed\n',
    );
    expect((await get(`${server.url}/healthz`)).status).toBe(200);
  });

  test('serves metrics', async () => {
    await using server = await start();
    expect(await get(`${server.url}/metrics`)).toEqual({
      status: 200,
      body: 'a_total 1\n',
      type: METRICS.contentType,
    });
  });

  test('keeps running when metrics fail', async () => {
    await using server = await start({}, { ...METRICS, text: () => Promise.reject(new Error('no')) });
    expect((await get(`${server.url}/metrics`)).status).toBe(500);
    expect((await get(`${server.url}/healthz`)).status).toBe(200);
  });

  test('returns 404 for other paths', async () => {
    await using server = await start();
    expect((await get(`${server.url}/`)).status).toBe(404);
    expect((await get(`${server.url}/healthz`, { method: 'POST' })).status).toBe(405);
    expect((await get(`${server.url}//evil/../healthz`)).status).toBe(404);
  });

  test('returns 404 for a target that is not a URL, and logs no failure of this program', async () => {
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (_: unknown, message: string) => void errors.push(message) };
    await using server = await start({}, METRICS, { logger });
    expect((await get(`${server.url}//`)).status).toBe(404);
    expect(errors).toEqual([]);
  });

  // The chart binds `:8080`, and the kubelet of a cluster with IPv6 alone probes the address of the Pod.
  test.skipIf(!hasIPv6())('without a host listens on IPv6 and on IPv4', async () => {
    await using server = await start({}, METRICS, { bindAddress: ':0' });
    const { port } = new URL(server.url);
    for (const host of ['[::1]', '127.0.0.1'])
      expect(await get(`http://${host}:${port}/healthz`)).toMatchObject({ status: 200 });
  });

  test('reports an address that is in use', async () => {
    await using server = await start();
    const { host } = new URL(server.url);
    await expect(start({}, METRICS, { bindAddress: host })).rejects.toThrow(/EADDRINUSE/);
  });
});
