/** Changes from the host are recorded before they are written: no edit is lost between two daemons, or when one ends between its writes. */

import { describe, test } from 'vitest';
import type { ApiProxy, ProxiedRequest } from './api-proxy.ts';
import type { Daemon } from './daemon.ts';
import { pair, type NewWorld, type World } from './world.ts';

const KEY = 'default/edited';
const EDITS = 200;
/** Two daemons without a Lease contest each other on a busy machine, and what is contested waits for five minutes at most. */
const CONTESTED = { timeoutMs: 6 * 60_000 };

export function recordedBeforeScenarios(newWorld: NewWorld): void {
  describe('two daemons', () => {
    test(
      `lose none of ${EDITS} edits in a row on alternating sides`,
      { timeout: 900_000 },
      async ({ expect }) => {
        await using world = await newWorld();
        const daemons = [await world.startDaemon(), await world.startDaemon()];
        await create(world);
        const wanted: Record<string, string> = {};
        for (let i = 0; i < EDITS; i++) {
          wanted[`e-${i}`] = String(i);
          await edit(world, i % 2 === 0 ? 'host' : 'virtual', { [`e-${i}`]: String(i) });
        }
        const isComplete = (labels: Record<string, string> = {}): boolean =>
          Object.keys(wanted).every((name) => labels[name] === wanted[name]);
        await world.whenVirtual(KEY, ({ metadata }) => isComplete(metadata.labels), CONTESTED);
        await world.whenCopy(KEY, ({ metadata }) => isComplete(metadata.labels), CONTESTED);
        for (const daemon of daemons) await world.settle(daemon);
        expect((await world.getVirtual(KEY)).metadata.labels).toEqual(wanted);
      },
    );

    test(
      'carry the last of five edits of one label in a row, 40 times',
      { timeout: 600_000 },
      async ({ expect }) => {
        await using world = await newWorld();
        await world.startDaemon();
        await world.startDaemon();
        await create(world);
        for (let turn = 0; turn < 40; turn++) {
          const sides = turn % 2 === 0 ? (['host', 'virtual'] as const) : (['virtual', 'host'] as const);
          // One that goes to and fro more often is contested.
          const name = `turn-${Math.floor(turn / 4)}`;
          for (let i = 0; i < 5; i++) await edit(world, sides[0], { [name]: `${turn}-${i}` });
          await whenLabelled(world, sides[1], `${turn}-4`, name);
          await whenLabelled(world, sides[0], `${turn}-4`, name);
        }
        const last = Array.from({ length: 10 }, (_, at) => [`turn-${at}`, `${4 * at + 3}-4`]);
        expect((await world.getVirtual(KEY)).metadata.labels).toEqual(Object.fromEntries(last));
      },
    );
  });

  describe('a daemon that is killed', () => {
    test('after it recorded a change of the host: the next one syncs it back', async ({ expect }) => {
      await using world = await newWorld();
      const { daemon, proxies } = await behindProxies(world);
      const killed = Promise.withResolvers<void>();
      proxies.virtual.behaviour = {
        async decide(request) {
          if (!isLabelPatch(request)) return { kind: 'pass' };
          await daemon.kill();
          killed.resolve();
          return { kind: 'cut' };
        },
      };
      await edit(world, 'host', { turn: 'host' });
      await killed.promise;
      expect((await world.getVirtual(KEY)).metadata.labels).toBeUndefined();
      // Another edit on the host, before anything runs again.
      await edit(world, 'host', { more: '1' });
      const next = await world.startDaemon();
      await whenLabelled(world, 'virtual', 'host');
      await world.settle(next);
      expect((await world.getVirtual(KEY)).metadata.labels).toEqual({ turn: 'host', more: '1' });
      await world.whenCopied(KEY);
    });

    test('after it synced the change back: a later removal on the virtual side is not mistaken for a change on the host', async ({
      expect,
    }) => {
      await using world = await newWorld();
      const { daemon, proxies } = await behindProxies(world);
      const killed = Promise.withResolvers<void>();
      proxies.virtual.behaviour = {
        async afterWrite(request) {
          if (!isLabelPatch(request)) return;
          await daemon.kill();
          killed.resolve();
        },
      };
      await edit(world, 'host', { turn: 'host', stays: '1' });
      await killed.promise;
      await edit(world, 'virtual', { turn: null });
      const next = await world.startDaemon();
      await world.whenCopy(KEY, ({ metadata }) => metadata.labels?.['turn'] === undefined);
      await world.settle(next);
      expect((await world.getVirtual(KEY)).metadata.labels).toEqual({ stays: '1' });
      await world.whenCopied(KEY);
    });
  });
}

interface Proxied {
  readonly daemon: Daemon;
  readonly proxies: { readonly virtual: ApiProxy; readonly host: ApiProxy };
}

async function behindProxies(world: World): Promise<Proxied> {
  const [virtual, host] = [await world.proxy('virtual'), await world.proxy('host')];
  const daemon = await world.startDaemon({ kubeconfigs: { virtual: virtual.path, host: host.path } });
  await create(world);
  await world.settle(daemon);
  return { daemon, proxies: { virtual, host } };
}

async function create(world: World): Promise<void> {
  await world.createVirtual(KEY);
  await world.whenCopied(KEY);
}

async function edit(
  world: World,
  side: 'virtual' | 'host',
  labels: Record<string, string | null>,
): Promise<void> {
  const place = side === 'host' ? world.hostKey(KEY) : pair(KEY);
  await world[side].merge('Endpoints', place, { metadata: { labels } });
}

async function whenLabelled(
  world: World,
  side: 'virtual' | 'host',
  turn: string,
  name = 'turn',
): Promise<void> {
  const when = side === 'host' ? world.whenCopy.bind(world) : world.whenVirtual.bind(world);
  await when(KEY, ({ metadata }) => metadata.labels?.[name] === turn, {
    what: `edit ${turn} on the ${side}`,
  });
}

function isLabelPatch({ method, path, body }: ProxiedRequest): boolean {
  return method === 'PATCH' && path.includes('/endpoints/edited') && body.includes('turn');
}
