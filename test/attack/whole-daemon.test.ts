/**
 * All hostile expressions of the other tests at once, through the whole program: in a daemon with its default settings, and in the members of a
 * fleet. What becomes of each object, and what others get meanwhile.
 */

import { expect, test } from 'vitest';
import { isJsonObject, textAt, type JsonObject } from '../../src/base/json.ts';
import { asJson, type KubeObject } from '../../src/kube/object.ts';
import type { TestCluster } from '../scenarios/cluster-client.ts';
import { newEmbeddedWorld } from '../scenarios/embedded-world.ts';
import { annotating, newEmbeddedFleet, SWITCHED_OFF } from '../scenarios/fleet-world.ts';
import { subset, subsetsOf } from '../scenarios/objects.ts';
import type { RunningDaemon } from '../scenarios/running-daemon.ts';
import { costlyRuns } from '../support/costly-runs.ts';
import { eventually } from '../support/eventually.ts';
import { anySeed, seededRandom } from '../support/random.ts';
import { expectPlain, RAW } from './control-text.ts';
import {
  annotationOf,
  EVIL_IP,
  EVIL_NAMESPACE,
  KNOWN_ATTACKS,
  objectOf,
  patchOf,
  randomAttacks,
  REFUSED_EXPRESSIONS,
  type Effect,
  type TenantAttack,
} from './tenant-attacks.ts';

const seed = Number(process.env['FUZZ_SEED'] ?? anySeed());
const random = seededRandom(seed);
const ATTACKS = [
  ...KNOWN_ATTACKS.filter(({ mayBeStopped }) => !mayBeStopped),
  ...sample(KNOWN_ATTACKS.filter(({ mayBeStopped }) => mayBeStopped)),
  ...randomAttacks(random, 50),
];
/** The values of a member have at most 32 KiB of patches. */
const HOSTILE_MEMBERS = 4;
const REFUSED_MEMBERS = 6;
const UPDATES = 5;
/** On a busy machine, a stop takes seconds. */
const TIMEOUT_MS = 600_000;

const NOTE = 'example.com/note';
const NOTE_PATCH = { path: `metadata.annotations["${NOTE}"]`, expression: 'value + "!"' };
const REFUSED_PATCHES = REFUSED_EXPRESSIONS.map((expression) => ({
  path: NOTE_PATCH.path,
  expression,
}));

/** A virtual cluster with hostile objects. */
interface Attacked {
  readonly attacks: readonly TenantAttack[];
  readonly virtual: TestCluster;
  readonly host: TestCluster;
  readonly hostNamespace: string;
}

test(
  `${ATTACKS.length} attacks on a daemon, FUZZ_SEED=${seed}`,
  async () => {
    await using world = await newEmbeddedWorld();
    const { virtual, host, hostNamespace } = world;
    const attacked = { attacks: ATTACKS, virtual, host, hostNamespace };
    const daemon = await world.startSync({ config: patchedBy([...ATTACKS.map(patchOf), NOTE_PATCH]) });
    await world.createVirtual('default/web', { annotations: { [NOTE]: 'created' } });
    const updates = async (): Promise<void> => {
      for (let at = 0; at < UPDATES; at++) {
        await world.mergeVirtual('default/web', { metadata: { annotations: { [NOTE]: `update ${at}` } } });
        await world.whenCopy(
          'default/web',
          ({ metadata }) => metadata.annotations?.[NOTE] === `update ${at}!`,
        );
      }
    };
    await begin(attacked);
    await updates();
    await expectEffects(attacked);
    await expectRunning(daemon);
    // A file that no program accepts changes nothing.
    world.expectErrors(/configuration file is invalid, keeping the running configuration/u);
    world.writeConfig(world.configuration({ config: patchedBy(REFUSED_PATCHES) }, 0), 'config-1.yaml');
    const refusal = await daemon.whenLogged(/configuration file is invalid, keeping/u);
    for (const at of REFUSED_PATCHES.keys()) expect(refusal?.['reason']).toContain(`patches[${at}]`);
    await updates();
  },
  TIMEOUT_MS,
);

test(
  `${ATTACKS.length} attacks on ${HOSTILE_MEMBERS} members of a fleet, FUZZ_SEED=${seed}`,
  async () => {
    await using world = await newEmbeddedFleet();
    const good = await world.install('good', { values: annotating('us') });
    const hostile: Attacked[] = [];
    const members = [];
    for (let at = 0; at < HOSTILE_MEMBERS; at++) {
      const attacks = ATTACKS.filter((_, index) => index % HOSTILE_MEMBERS === at);
      const member = await world.install(`hostile-${at}`, { values: valuesWith(attacks.map(patchOf)) });
      members.push(member);
      hostile.push({
        attacks,
        virtual: member.virtual,
        host: world.host,
        hostNamespace: member.namespace,
      });
    }
    const refused = [];
    for (let at = 0; at < REFUSED_MEMBERS; at++) {
      const patches = REFUSED_PATCHES.filter((_, index) => index % REFUSED_MEMBERS === at);
      refused.push(await world.install(`refused-${at}`, { index: 0, values: valuesWith(patches) }));
    }
    const fleet = await world.start();
    for (const member of [good, ...members]) await world.whenState(fleet, member, 'joined');
    await Promise.all(hostile.map(begin));
    for (let at = 0; at < UPDATES; at++) {
      await world.createEndpoints(good, `web-${at}`, '10.1.0.1');
      const copy = await world.whenCopied(good, `web-${at}`, '10.1.0.1');
      expect(copy.metadata.annotations?.['example.com/by']).toBe('us');
    }
    for (const one of refused) expect(await world.whenState(fleet, one, 'invalid')).toContain('patches[0]');
    for (const one of hostile) await expectEffects(one);
    await expectRunning(fleet);
    for (const member of [good, ...members]) await world.whenState(fleet, member, 'joined');
    expect(await world.host.list('Endpoints', good.namespace)).toHaveLength(UPDATES);
  },
  TIMEOUT_MS,
);

function patchedBy(patches: JsonObject[]): JsonObject {
  return { sync: { toHost: { endpoints: { enabled: true, patches } } } };
}

function valuesWith(patches: JsonObject[]): JsonObject {
  return { sync: { toHost: { ...SWITCHED_OFF, endpoints: { enabled: false, patches } } } };
}

/** Of the expressions that take long, others in each run. */
function sample(attacks: readonly TenantAttack[]): TenantAttack[] {
  const shuffled = attacks.map((one) => [random(), one] as const).toSorted(([a], [b]) => a - b);
  return shuffled.slice(0, costlyRuns(attacks.length)).map(([, one]) => one);
}

async function begin({ attacks, virtual }: Attacked): Promise<void> {
  await virtual.ensureNamespace(EVIL_NAMESPACE);
  await Promise.all(attacks.map((one) => virtual.create('Endpoints', objectOf(one))));
}

/** Each object is copied, with its own addresses, and its annotation is what its expression may make of it. */
async function expectEffects(attacked: Attacked): Promise<void> {
  const wrong = async (): Promise<unknown[]> => {
    const effects = await effectsOn(attacked);
    return attacked.attacks.flatMap((one) => {
      const effect = effects.get(one.name);
      return isAllowed(one, effect) ? [] : [{ ...one, effect }];
    });
  };
  await eventually(wrong, (left) => left.length === 0, {
    what: 'the effect of each expression',
    timeoutMs: TIMEOUT_MS / 2,
  });
  const copies = await evilCopies(attacked);
  expect(copies).toHaveLength(attacked.attacks.length);
  for (const copy of copies) expect(subsetsOf(copy)).toEqual([subset(EVIL_IP)]);
  for (const note of (await attacked.virtual.list('Event', '')).map((event) => textAt(asJson(event), 'note')))
    expect(note).not.toMatch(RAW);
}

function isAllowed({ allowed }: TenantAttack, effect: Effect | undefined): boolean {
  if (effect === undefined || allowed === undefined) return effect !== undefined;
  return allowed.some((one) => JSON.stringify(one) === JSON.stringify(effect));
}

async function evilCopies({ host, hostNamespace }: Attacked): Promise<KubeObject[]> {
  const all = await host.list('Endpoints', hostNamespace);
  return all.filter(
    ({ metadata }) => metadata.annotations?.['vcluster.loft.sh/object-namespace'] === EVIL_NAMESPACE,
  );
}

/** By the names of the objects; those of which there is no copy have none. */
async function effectsOn(attacked: Attacked): Promise<ReadonlyMap<string, Effect>> {
  const copies = new Map(
    (await evilCopies(attacked)).map((copy) => [
      copy.metadata.annotations?.['vcluster.loft.sh/object-name'],
      copy,
    ]),
  );
  const events = await attacked.virtual.list('Event', EVIL_NAMESPACE);
  const failed = new Set(events.filter(({ reason }) => reason === 'PatchFailed').map(regardingOf));
  const effects = new Map<string, Effect>();
  for (const one of attacked.attacks) {
    const copy = copies.get(one.name);
    if (copy === undefined) continue;
    const text = copy.metadata.annotations?.[annotationOf(one)];
    const without = failed.has(one.name) ? 'failed' : 'removed';
    effects.set(one.name, text === undefined ? without : { text });
  }
  return effects;
}

function regardingOf({ regarding }: KubeObject): unknown {
  return isJsonObject(regarding) ? regarding['name'] : undefined;
}

/** The process of the program is the one of the test. */
async function expectRunning(daemon: RunningDaemon): Promise<void> {
  expect((await daemon.get('/healthz')).status).toBe(200);
  expect((await daemon.get('/readyz')).status).toBe(200);
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
  expectPlain(daemon.stderr);
}
