/** The history of a seed: always the same operations, daemons and configuration. */

import type { Random } from '../../../src/base/random.ts';
import { seededRandom } from '../../support/random.ts';
import { CONFIG, SECRET, type Settings } from '../daemon/sim-config.ts';
import { drawHistory, KEYS } from './draw.ts';
import type { BesidePlural } from '../world/vcluster-syncer.ts';
import { BEFORE_137, type ServerWays } from '../world/sim-cluster.ts';
import {
  ADMISSION_FORMS,
  REFERENCED_PLURALS,
  SYNCED_PLURALS,
  type Operation,
  type Side,
} from './operations.ts';
import { HOST_NAMESPACE, VIRTUAL_NAMES } from '../world/names.ts';

export interface SeededHistory {
  readonly seed: number;
  readonly daemons: number;
  /** Another daemon runs beside them, with `--dry-run`. */
  readonly hasDryRun: boolean;
  readonly settings: Settings;
  /** Default: both clusters as they were before 1.37. */
  readonly servers?: Readonly<Record<Side, ServerWays>>;
  readonly isCalm: boolean;
  readonly operations: readonly Operation[];
}

export function seededHistory(seed: number, steps: number): SeededHistory {
  const isCalm = seed % 10 === 0;
  const daemons = !isCalm && seed % 3 === 0 ? 2 : 1;
  const plain: Settings = {
    isPatched: true,
    areEndpointsSynced: seed % 11 !== 5,
    areSlicesSynced: seed % 2 === 1 || seed % 11 === 5,
    areServicesSynced: seed % 3 === 1,
    hasReferences: seed % 4 >= 2,
    hasLeaderElection: seed % 6 === 3 || seed % 13 === 1,
    hasOwner: seed % 9 === 4,
    requiresService: seed % 17 === 3,
    deletesVirtual: seed % 7 === 4,
    syncedByVcluster: [],
    isMapped: seed % 8 === 5,
    naming: seed % 7 === 2 ? 'long' : 'short',
  };
  // vCluster knows no mapped namespaces here, and deletes virtual objects itself.
  const hasOthers = seed % 5 === 2 && !isCalm && !plain.isMapped && !plain.deletesVirtual;
  const isForced = hasOthers && seed % 3 !== 0;
  const settings: Settings = isForced ? { ...plain, syncedByVcluster: BESIDE_PLURALS } : plain;
  const drawn = drawHistory(seededRandom(seed), { steps, daemons, settings, isCalm });
  const hasAdmission = seed % 5 === 3 && !isCalm;
  const scaled = seed % 7 === 5 ? scaledToZero(drawn, seededRandom(seed ^ 0x2e0)) : drawn;
  const operations = hasOthers
    ? withOtherWriters(scaled, seededRandom(seed ^ 0x07e5))
    : hasAdmission
      ? withAdmission(scaled, settings, seededRandom(seed ^ 0xad3))
      : seed % 5 === 4 && !isCalm
        ? withHeldCopies(scaled, seededRandom(seed ^ 0xf1a1))
        : scaled;
  const withImports =
    settings.hasReferences && !isCalm && seed % 3 === 2
      ? withHeldImports(operations, settings, seededRandom(seed ^ 0x1b07))
      : operations;
  const servers = { virtual: serverOf(seed, 0x1370), host: serverOf(seed, 0x1371) };
  return { seed, daemons, hasDryRun: seed % 16 === 9, settings, servers, isCalm, operations: withImports };
}

/** The endpoints controller of 1.37 was seen 12 s behind. */
const LATE_MS = 12_000;

function serverOf(seed: number, salt: number): ServerWays {
  const roll = seededRandom(seed ^ salt)();
  if (roll < 0.4) return BEFORE_137;
  return { deletesEndpoints: false, controllerLagMs: roll < 0.9 ? LATE_MS : undefined, seed: seed ^ salt };
}

const TO_ZERO = 0.4;

/** The same history with objects that have no address at times. */
function scaledToZero(drawn: readonly Operation[], random: Random): readonly Operation[] {
  return drawn.map((operation) =>
    (operation.kind === 'put' || operation.kind === 'addresses') &&
    operation.plural !== 'services' &&
    random() < TO_ZERO
      ? { ...operation, ips: 0 }
      : operation,
  );
}

/** The same history with a webhook on the host for a part of it. */
function withAdmission(
  drawn: readonly Operation[],
  { areEndpointsSynced }: Settings,
  random: Random,
): readonly Operation[] {
  const endMs = drawn.at(-1)?.atMs ?? 0;
  const atMs = (random() * endMs) / 2;
  const form = ADMISSION_FORMS[Math.floor(random() * ADMISSION_FORMS.length)] ?? 'annotates';
  const plural = areEndpointsSynced ? 'endpoints' : 'endpointslices';
  return [...drawn, { atMs, kind: 'admission', plural, form, forMs: random() * endMs } as const].toSorted(
    (a, b) => a.atMs - b.atMs,
  );
}

const HELD_MAX_MS = 60_000;

/** The same history with copies that a finalizer holds while their virtual objects are created again, and that others write then. */
function withHeldCopies(drawn: readonly Operation[], random: Random): readonly Operation[] {
  const endMs = drawn.at(-1)?.atMs ?? 0;
  const [key = ''] = KEYS;
  const held = [0, 1, 2].flatMap((object): Operation[] => {
    const plural = SYNCED_PLURALS[Math.floor(random() * SYNCED_PLURALS.length)] ?? 'endpoints';
    const place = { plural, object };
    const put = (putMs: number): Operation => {
      const given = { object, atMs: putMs, labels: {} };
      return plural === 'services'
        ? { ...given, kind: 'putService', plural, form: 'balanced', ports: 1, annotations: {} }
        : { ...given, kind: 'put', plural, ips: 1, annotations: { [key]: 'held' } };
    };
    let atMs = random() * endMs;
    const next = (): number => (atMs += random() * (HELD_MAX_MS / 6));
    return [
      put(next()),
      { atMs: next(), kind: 'finalizer', side: 'host', ...place, isSet: true },
      { atMs: next(), kind: 'delete', side: random() < 0.7 ? 'virtual' : 'host', ...place },
      put(next()),
      { atMs: next(), kind: 'annotate', side: 'host', ...place, key, value: 'late' },
      { atMs: next(), kind: 'finalizer', side: 'host', ...place, isSet: false },
    ];
  });
  return [...drawn, ...held].toSorted((a, b) => a.atMs - b.atMs);
}

/** What would make what a user wrote undecidable beside another syncer: other patches and names, and bookkeeping that other clients forge. */
const LEFT_OUT: readonly string[] = ['configure', 'damage', 'clone', 'foreign', 'forge'];
const BESIDE_PLURALS = ['endpoints', 'endpointslices'] as const;
const BESIDE: readonly (readonly BesidePlural[])[] = [['endpoints'], ['endpointslices'], BESIDE_PLURALS];
const BESIDE_MAX_MS = 120_000;

/** The same history with vCluster's own syncs on for a while, and agents on both sides that rewrite an annotation. */
function withOtherWriters(drawn: readonly Operation[], random: Random): readonly Operation[] {
  const kept = drawn.filter(({ kind }) => !LEFT_OUT.includes(kind));
  const endMs = kept.at(-1)?.atMs ?? 0;
  const at = (): number => random() * endMs;
  const below = (limit: number): number => Math.floor(random() * limit);
  const services = [0, 1, 2].map((object) => {
    return { atMs: 0, kind: 'service', side: 'virtual', object, form: 'plain' } as const;
  });
  const onMs = at();
  const others: readonly Operation[] = [
    ...services,
    { atMs: onMs, kind: 'vcluster', plurals: BESIDE[below(BESIDE.length)] ?? [] },
    { atMs: onMs + random() * BESIDE_MAX_MS, kind: 'vcluster', plurals: [] },
    ...[0, 1].map((object) => {
      const plural = (['endpoints', 'endpointslices'] as const)[below(2)] ?? 'endpoints';
      return { atMs: at(), kind: 'agents', plural, object, forMs: random() * BESIDE_MAX_MS } as const;
    }),
  ];
  return [...kept, ...others].toSorted((a, b) => a.atMs - b.atMs);
}

/** The same history with imports, originals and namespaces that finalizers hold: deleted by either side, created again, no longer referenced. */
function withHeldImports(
  drawn: readonly Operation[],
  { areEndpointsSynced, isMapped }: Settings,
  random: Random,
): readonly Operation[] {
  const endMs = drawn.at(-1)?.atMs ?? 0;
  const one = <T>(all: readonly [T, ...T[]]): T => all[Math.floor(random() * all.length)] ?? all[0];
  const held = [0, 1, 2].flatMap((object): Operation[] => {
    const plural = one(REFERENCED_PLURALS);
    const namespace = VIRTUAL_NAMES[object]?.namespace ?? '';
    const name = one(['tls', 'ca']);
    const [from, to] = one([
      ['virtual', 'host'],
      ['host', 'virtual'],
    ] as const);
    const place = { plural, namespace, name } as const;
    const original = { ...place, side: from, place: 'name' } as const;
    const copy = { ...place, side: to, place: to === 'host' ? 'target' : 'name' } as const;
    const key = plural === 'secrets' ? SECRET : CONFIG;
    let atMs = random() * endMs;
    const next = (): number => (atMs += random() * (HELD_MAX_MS / 8));
    const put = (value: string): Operation => ({
      atMs: next(),
      kind: 'object',
      ...original,
      // What is immutable is created again when it changes.
      form: object === 0 ? 'immutable' : 'plain',
      value,
    });
    const refer = (annotations: Readonly<Record<string, string>>): Operation => ({
      atMs: next(),
      kind: 'put',
      plural: areEndpointsSynced ? 'endpoints' : 'endpointslices',
      object,
      ips: 1,
      labels: {},
      annotations,
    });
    const remove = (side: typeof original | typeof copy): Operation => ({
      atMs: next(),
      kind: 'object',
      ...side,
      form: 'absent',
      value: '',
    });
    const end = one(['copy', 'original', 'reference', 'namespace'] as const);
    const ended: Readonly<Record<typeof end, () => readonly Operation[]>> = {
      copy: () => [remove(copy), put('later')],
      original: () => [remove(original), put('again')],
      reference: () => [refer({}), put('unseen'), refer({ [key]: name })],
      // The host namespace is that of everything.
      namespace: () => [
        {
          atMs: next(),
          kind: 'namespace',
          ...(to === 'host' && !isMapped
            ? { side: 'host', name: HOST_NAMESPACE }
            : { side: 'virtual', name: namespace }),
          forMs: random() * HELD_MAX_MS,
        },
        put('again'),
      ],
    };
    return [
      put('first'),
      refer({ [key]: name }),
      { atMs: next(), kind: 'holdObject', ...one([copy, copy, original]), isSet: true },
      ...ended[end](),
      refer({ [key]: name }),
      { atMs: next() + random() * HELD_MAX_MS, kind: 'holdObject', ...copy, isSet: false },
      { atMs: next() + random() * HELD_MAX_MS, kind: 'holdObject', ...original, isSet: false },
    ];
  });
  return [...drawn, ...held].toSorted((a, b) => a.atMs - b.atMs);
}
