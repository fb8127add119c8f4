/** Each command between API servers that are slow, but within what a kube-apiserver may take: it does what it does between fast ones. */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ProxiedRequest } from '../scenarios/api-proxy.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { LocalDaemon } from '../scenarios/local-daemon.ts';
import type { World } from '../scenarios/world.ts';
import { spawnedRun } from '../cli/captured-run.ts';

/** Milliseconds until the API server gets a request. */
type Delay = (request: ProxiedRequest) => number;

const SLOWNESS: readonly (readonly [string, Delay])[] = [
  ['each request takes 2 s', ({ isWatch }) => (isWatch ? 0 : 2000)],
  ['one list takes 20 s', ({ path, isWatch }) => (!isWatch && /\/endpoints\?/u.test(path) ? 20_000 : 0)],
];

const COMMANDS: readonly (readonly [args: readonly string[], code: number, out: RegExp])[] = [
  [['status'], 0, /default +web .* pending/u],
  [['diff'], 1, /^\+ +- ip: 10\.1\.0\.1$/mu],
  [['explain', 'default/web'], 0, /web/u],
  [['cleanup', '--dry-run'], 0, /^$/u],
  [['run', '--dry-run', '--once', '-o', 'name'], 1, /^endpoints\/web-x-/mu],
];

for (const [slowness, delay] of SLOWNESS)
  for (const [args, code, out] of COMMANDS)
    test(`${slowness}: ${args.join(' ')}`, async () => {
      await using world = await newEmbeddedWorld();
      const config = await slowConfig(world, delay);
      const result = await spawnedRun([...args, '--config', config]);
      expect(result.out).toMatch(out);
      expect([result.code, result.err]).toEqual([code, expect.not.stringMatching(/^ +at /mu)]);
    });

test('each request takes 2 s: the daemon copies a new object', async () => {
  await using world = await newEmbeddedWorld();
  const config = await slowConfig(world, ({ isWatch }) => (isWatch ? 0 : 2000));
  await using daemon = await LocalDaemon.start(config);
  await world.createVirtual('default/late');
  await world.whenCopy('default/late');
  expect(daemon.unexpectedLines([])).toEqual([]);
});

/** A configuration that references a Secret, between slow servers. */
async function slowConfig(world: World, delay: Delay): Promise<string> {
  const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
  for (const proxy of [virtual, host])
    proxy.behaviour = {
      async decide(request) {
        await sleep(delay(request));
        return { kind: 'pass' };
      },
    };
  await world.createVirtual('default/web');
  const patches = [{ path: 'metadata.annotations.secret', reference: { apiVersion: 'v1', kind: 'Secret' } }];
  const kubeconfigs = { virtual: virtual.path, host: host.path };
  return world.writeConfig(
    world.configuration({ kubeconfigs, config: { sync: { toHost: { endpoints: { patches } } } } }, 0),
  );
}
