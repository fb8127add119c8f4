/** One tenant makes the daemon wait, on as many objects as there are decisions at a time, and more: the objects of others are synced meanwhile. */

import { describe, test } from 'vitest';
import type { KubeObject } from '../../src/kube/object.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { newFleetMemberWorld } from '../scenarios/fleet-member-world.ts';
import type { NewWorld, World } from '../scenarios/world.ts';
import { HOSTILE_EXPRESSIONS } from './tenants.ts';

const NOTE = 'example.com/note';
const EVIL = `${'a'.repeat(32)}b`;
const UPDATES = 20;
/** Far longer than any update takes, and shorter than the wait for the throttled process. */
const UPDATED = { timeoutMs: 20_000 };

describe.each(Object.entries(HOSTILE_EXPRESSIONS))('%s', (_what, expression) => {
  test.concurrent.for<[where: string, count: number, newWorld: NewWorld]>([
    ['a daemon', 64, newEmbeddedWorld],
    ['a daemon', 100, newEmbeddedWorld],
    ['a daemon', 300, newEmbeddedWorld],
    ['a fleet', 300, newFleetMemberWorld],
  ])('in %s, on %d objects of one namespace', async ([, count, newWorld], { expect }) => {
    await using world = await newWorld();
    const patches = [{ path: `metadata.annotations["${NOTE}"]`, expression }];
    await world.startSync({ config: { sync: { toHost: { endpoints: { enabled: true, patches } } } } });
    for (const namespace of ['evil', 'good']) await world.virtualNamespace(namespace);
    await world.createVirtual('good/web', { annotations: { [NOTE]: 'created' } });
    await whenNoted(world, 'created');
    const hostile = Array.from({ length: count }, (_, at) => `evil/web-${at}`);
    await Promise.all(
      hostile.map((key, at) => world.createVirtual(key, { annotations: { [NOTE]: `${EVIL}${at}` } })),
    );
    for (let at = 0; at < UPDATES; at++) {
      const value = `update ${at}.`;
      await world.mergeVirtual('good/web', { metadata: { annotations: { [NOTE]: value } } });
      expect(await whenNoted(world, value)).toMatch(/^update/u);
    }
  });
});

/** Less than an expression may take, on each of so many objects that their namespace keeps the sandbox busy for long. */
const SLOW =
  'value.startsWith("slow") ? (() => { let n = 0; while (n < 1e8) n++; return value + n })() : value';
/** Of the controller at a time. */
const DECISIONS = 64;
const LIMITS = { sandbox: { expressionTimeout: '10s', batchTimeout: '20s' } };

test.for<[where: string, newWorld: NewWorld]>([
  ['a daemon', newEmbeddedWorld],
  ['a fleet', newFleetMemberWorld],
])('in %s, values of one namespace that take long, but not too long', async ([, newWorld], { expect }) => {
  await using world = await newWorld();
  const patches = [{ path: `metadata.annotations["${NOTE}"]`, expression: SLOW }];
  await world.startSync({
    config: { endpointSyncer: LIMITS, sync: { toHost: { endpoints: { enabled: true, patches } } } },
  });
  for (const namespace of ['slow', 'good']) await world.virtualNamespace(namespace);
  await world.createVirtual('good/web', { annotations: { [NOTE]: 'created' } });
  await whenNoted(world, 'created');
  const slow = Array.from({ length: 500 }, (_, at) => `slow/web-${at}`);
  await Promise.all(
    slow.map((key, at) => world.createVirtual(key, { annotations: { [NOTE]: `slow ${at}` } })),
  );
  for (let at = 0; at < 3; at++) {
    const before = (await world.copies()).length;
    await world.mergeVirtual('good/web', { metadata: { annotations: { [NOTE]: `update ${at}.` } } });
    await whenNoted(world, `update ${at}.`);
    // Without turns, nearly all come first. Some are written until the update is noticed.
    expect((await world.copies()).length - before).toBeLessThan(DECISIONS);
  }
  expect((await world.copies()).length).toBeLessThan(slow.length);
});

async function whenNoted(world: World, value: string): Promise<string> {
  const noteOf = ({ metadata }: KubeObject): string => metadata.annotations?.[NOTE] ?? '';
  return noteOf(await world.whenCopy('good/web', (copy) => noteOf(copy).startsWith(value), UPDATED));
}
