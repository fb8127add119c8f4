/** One world and one daemon for all tests of a `describe`, each test in a virtual namespace of its own. */

import { afterAll, beforeAll } from 'vitest';
import type { Daemon } from './daemon.ts';
import type { RunningDaemon } from './running-daemon.ts';
import type { NewWorld, StartOptions, World } from './world.ts';

export interface Shared<D extends RunningDaemon = RunningDaemon> {
  readonly world: World;
  readonly daemon: D;
  /** A virtual namespace that no other test of this world uses. */
  readonly namespace: () => Promise<string>;
}

/** For two clusters and a daemon that may serve the key and token API, on a loaded machine. */
const START_MAX_MS = 300_000;

/** What `sharedWorld` opened; only while tests run. */
export type SharedWorld<D extends RunningDaemon = RunningDaemon> = () => Shared<D>;

type Options = Pick<StartOptions, 'config' | 'kubeconfigs'>;
type Configure = (world: World) => Options | Promise<Options>;

/** With a daemon in this process, where that is possible: see {@link World.startSync}. */
export function sharedWorld(newWorld: NewWorld, configure: Configure = () => ({})): SharedWorld {
  return shared(newWorld, async (world) => world.startSync(await configure(world)));
}

/** With a daemon that is a process, for tests that signal it. */
export function sharedProcess(newWorld: NewWorld, configure: Configure = () => ({})): SharedWorld<Daemon> {
  return shared(newWorld, async (world) => world.startDaemon(await configure(world)));
}

function shared<D extends RunningDaemon>(
  newWorld: NewWorld,
  start: (world: World) => Promise<D>,
): SharedWorld<D> {
  let opened: Shared<D> | undefined;
  let count = 0;
  beforeAll(async () => {
    const world = await newWorld();
    const daemon = await start(world);
    const namespace = async (): Promise<string> => {
      const name = `ns-${++count}`;
      await world.virtualNamespace(name);
      return name;
    };
    opened = { world, daemon, namespace };
  }, START_MAX_MS);
  afterAll(async () => {
    await opened?.world[Symbol.asyncDispose]();
  });
  return () => {
    if (opened === undefined) throw new Error('the world is open only while tests run');
    return opened;
  };
}
