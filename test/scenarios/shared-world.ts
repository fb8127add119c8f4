/** One world and one daemon for all tests of a `describe`, each test in a virtual namespace of its own. */

import { afterAll, beforeAll } from 'vitest';
import type { Daemon } from './daemon.ts';
import type { NewWorld, StartOptions, World } from './world.ts';

export interface Shared {
  readonly world: World;
  readonly daemon: Daemon & { configPath: string };
  /** A virtual namespace that no other test of this world uses. */
  readonly namespace: () => Promise<string>;
}

/** Two clusters, and a daemon that may serve the key and token API, on a machine with other work. */
const START_MAX_MS = 30_000;

/** What `sharedWorld` opened; only while tests run. */
export type SharedWorld = () => Shared;

export function sharedWorld(
  newWorld: NewWorld,
  start: (world: World) => StartOptions | Promise<StartOptions> = () => ({}),
): SharedWorld {
  let shared: Shared | undefined;
  let count = 0;
  beforeAll(async () => {
    const world = await newWorld();
    const daemon = await world.startDaemon(await start(world));
    const namespace = async (): Promise<string> => {
      const name = `ns-${++count}`;
      await world.virtualNamespace(name);
      return name;
    };
    shared = { world, daemon, namespace };
  }, START_MAX_MS);
  afterAll(async () => {
    await shared?.world[Symbol.asyncDispose]();
  });
  return () => {
    if (shared === undefined) throw new Error('the world is open only while tests run');
    return shared;
  };
}
