/** Draws the operations of a history from a seeded source. The order of the draws is part of what a seed means. */

import type { Random } from '../../../src/base/random.ts';
import { CONFIG, FORWARD, SECRET, TEAM, type Settings } from '../daemon/sim-config.ts';
import { CALM, type FaultRates } from '../world/faults.ts';
import { MANAGED_BY, MIRRORING, SERVICE_NAME } from '../world/host-controllers.ts';
import { HOST_NAMESPACE, REFERENCE_NAMES, VIRTUAL_NAMES, VIRTUAL_NAMESPACES } from '../world/names.ts';
import {
  SERVICE_TYPES,
  type Action,
  type Operation,
  type ReferencedPlural,
  type Side,
  type StringMap,
  type SyncedPlural,
} from './operations.ts';

export const PLAIN = 'example.com/plain';
/** Annotations that users edit on both sides. */
export const KEYS: readonly string[] = [TEAM, FORWARD, PLAIN, 'note'];
const LABELS = ['app', 'release', 'tier'];
const DAMAGED = [
  'vcluster.loft.sh/object-name',
  'vcluster.loft.sh/object-uid',
  'vcluster.loft.sh/object-imported',
  'vcluster.loft.sh/object-host-name',
  'endpoint-syncer/last-synced',
  'vcluster.loft.sh/managed-annotations',
];
const MANAGERS = [null, 'custom', MIRRORING, 'endpointslice-controller.k8s.io'];

export interface HistoryOptions {
  readonly steps: number;
  readonly daemons: number;
  readonly settings: Settings;
  /** Users edit objects, and nothing goes wrong. */
  readonly isCalm: boolean;
}

export function drawHistory(random: Random, options: HistoryOptions): readonly Operation[] {
  const draw = new Draw(random, options);
  const operations: Operation[] = [];
  let atMs = 0;
  while (operations.length < options.steps) {
    atMs += draw.pauseMs();
    for (const { afterMs, action } of draw.scene()) {
      atMs += afterMs;
      operations.push({ atMs, ...action });
    }
  }
  return operations;
}

/** Actions that are only together, and at such distances, what a program may get wrong; mostly a single one. */
type Scene = readonly { readonly afterMs: number; readonly action: Action }[];

class Draw {
  readonly #random: Random;
  readonly #options: HistoryOptions;

  constructor(random: Random, options: HistoryOptions) {
    this.#random = random;
    this.#options = options;
  }

  /** Mostly immediately or soon, sometimes after everything has settled. */
  pauseMs(): number {
    if (this.#options.isCalm) return 20_000 + this.#random() * 20_000;
    const kind = this.#random();
    if (kind < 0.3) return this.#random() * 20;
    if (kind < 0.8) return this.#random() * 500;
    return kind < 0.97 ? this.#random() * 10_000 : this.#random() * 700_000;
  }

  scene(): Scene {
    const { isCalm, settings, daemons } = this.#options;
    if (isCalm) return [{ afterMs: 0, action: this.#edit() }];
    const roll = this.#random();
    if (roll < 0.02) return this.#takenPlace();
    if (roll < 0.04) return this.#interruptedEdit();
    if (roll > 0.88 && roll < 0.9 && settings.areSlicesSynced) return this.#adoptedSlice();
    if (roll > 0.9 && roll < 0.92) return this.#restoredEdit();
    if (roll < 0.06) return settings.hasReferences ? this.#editedImport() : this.#restartedWithOldList();
    if (roll > 0.98) return this.#editedOnBothSides();
    if (roll > 0.96 && settings.hasReferences) return this.#takenImport();
    if (roll > 0.94 && roll < 0.96) return this.#forgedRecord();
    if (roll > 0.92 && settings.hasLeaderElection && daemons > 1) return this.#pausedLeader();
    return [{ afterMs: 0, action: this.#action() }];
  }

  #action(): Action {
    const { settings } = this.#options;
    const roll = this.#random();
    if (roll < (settings.hasReferences ? 0.45 : 0.58)) return this.#edit();
    if (roll < 0.58) return this.#object();
    if (roll < 0.76) return this.#interference();
    return this.#trouble();
  }

  #edit(): Action {
    const plural = this.#plural();
    const object = this.#below(VIRTUAL_NAMES.length);
    const side = this.#side();
    const roll = this.#random();
    if (roll < 0.33) return plural === 'services' ? this.#putService(object) : this.#put(plural, object);
    if (roll < 0.68)
      return { kind: 'annotate', plural, side, object, key: this.#key(), value: this.#valueOrNull() };
    if (roll < 0.84) return this.#label({ plural, side, object });
    const isDeletion = !this.#options.isCalm || (side === 'host' && this.#options.settings.deletesVirtual);
    if (roll < 0.94 || !isDeletion)
      return { kind: 'addresses', plural, side, object, ips: 1 + this.#below(3) };
    return { kind: 'delete', plural, side, object };
  }

  /** A controller of the host makes the copy its own, so that it is deleted and created again behind a stand-in. */
  #adoptedSlice(): Scene {
    const place = { plural: 'endpointslices', object: this.#below(VIRTUAL_NAMES.length) } as const;
    const label = { kind: 'label', side: 'host', key: MANAGED_BY, value: 'custom', ...place } as const;
    return [
      { afterMs: 0, action: this.#put(place.plural, place.object) },
      { afterMs: 500 + this.#random() * 5000, action: label },
    ];
  }

  #label(place: { plural: SyncedPlural; side: Side; object: number }): Action {
    if (place.plural === 'endpointslices' && !this.#options.isCalm && this.#random() < 0.3) {
      if (this.#random() < 0.5)
        return { kind: 'label', ...place, key: MANAGED_BY, value: this.#one(MANAGERS) };
      return { kind: 'label', ...place, key: SERVICE_NAME, value: this.#one(['web', 'db', 'a', null]) };
    }
    return { kind: 'label', ...place, key: this.#one(LABELS), value: this.#valueOrNull() };
  }

  #put(plural: SyncedPlural, object: number): Extract<Action, { kind: 'put' }> {
    const annotations: Record<string, string> = { ...this.#map(KEYS, 0.5) };
    if (this.#options.settings.hasReferences)
      for (const key of [SECRET, CONFIG])
        if (this.#random() < 0.6) annotations[key] = this.#one(REFERENCE_NAMES);
    const labels = this.#map(LABELS, 0.4);
    return { kind: 'put', plural, object, ips: 1 + this.#below(3), annotations, labels };
  }

  #putService(object: number): Action {
    const [annotations, labels] = [this.#map(KEYS, 0.4), this.#map(LABELS, 0.3)];
    const form = this.#one(SERVICE_TYPES);
    return {
      kind: 'putService',
      plural: 'services',
      object,
      form,
      ports: 1 + this.#below(2),
      annotations,
      labels,
    };
  }

  /** A tenant forges the record of an object that is created, updated, or restored from a backup. */
  #forgedRecord(): Scene {
    const plural = this.#areEndpoints() ? 'endpoints' : 'endpointslices';
    const object = this.#below(VIRTUAL_NAMES.length);
    const annotations = this.#map(KEYS, 0.7);
    const forge = { kind: 'forge', plural, object, annotations, isCreated: this.#random() < 0.5 } as const;
    const roll = this.#random();
    const pauseMs = this.#random() * 3000;
    if (roll < 0.5) return [{ afterMs: 0, action: forge }];
    const restore: Action = { ...this.#restore(), revisions: 1 + this.#below(5) };
    const crash: Action = { kind: 'crash', daemon: 0, afterWrites: this.#below(3), downMs: pauseMs };
    return [
      { afterMs: 0, action: this.#put(plural, object) },
      { afterMs: pauseMs, action: roll < 0.75 ? restore : crash },
      { afterMs: pauseMs, action: forge },
    ];
  }

  /** Another client replaces a copy while the daemon is about to delete it. */
  #takenPlace(): Scene {
    const place = { plural: this.#plural(), object: this.#below(VIRTUAL_NAMES.length) };
    return [
      { afterMs: 0, action: { kind: 'delete', side: 'virtual', ...place } },
      { afterMs: this.#random() * 30, action: { kind: 'foreign', isReplacing: true, ...place } },
    ];
  }

  /** The daemon ends between the two writes of an edit on the host, and starts again with other patches. */
  #interruptedEdit(): Scene {
    const place = { plural: this.#plural(), object: this.#below(VIRTUAL_NAMES.length) };
    const crash = { kind: 'crash', daemon: this.#below(this.#options.daemons), afterWrites: 1 } as const;
    const isPatched = this.#random() < 0.3;
    return [
      { afterMs: 0, action: { ...crash, downMs: 5000 } },
      {
        afterMs: 1,
        action: { kind: 'annotate', side: 'host', ...place, key: TEAM, value: this.#value() },
      },
      {
        afterMs: 200 + this.#random() * 3000,
        action: { kind: 'configure', settings: { isPatched }, isRestart: true },
      },
    ];
  }

  /** Users of both clusters edit the same annotation, the second before the edit of the first can have come across. */
  #editedOnBothSides(): Scene {
    const plural = this.#areEndpoints() ? 'endpoints' : 'endpointslices';
    const object = this.#below(VIRTUAL_NAMES.length);
    const edit = { kind: 'annotate', plural, object, key: this.#key() } as const;
    return [
      { afterMs: 0, action: this.#put(plural, object) },
      { afterMs: 2000, action: { ...edit, side: 'host', value: this.#value() } },
      { afterMs: this.#random() * 10, action: { ...edit, side: 'virtual', value: this.#value() } },
    ];
  }

  /** A user edits a copy while the daemon restarts, and its first list shows an earlier version of the virtual object. */
  #restartedWithOldList(): Scene {
    const plural = this.#areEndpoints() ? 'endpoints' : 'endpointslices';
    const object = this.#below(VIRTUAL_NAMES.length);
    const edit = { kind: 'annotate', plural, object, key: this.#one([PLAIN, TEAM]) } as const;
    const daemon = this.#below(this.#options.daemons);
    return [
      { afterMs: 0, action: this.#put(plural, object) },
      { afterMs: 2000, action: { ...edit, side: 'virtual', value: this.#value() } },
      { afterMs: 2000, action: { kind: 'trouble', forMs: 6000, rates: { ...CALM, staleLists: 0.8 } } },
      { afterMs: 0, action: { kind: 'crash', daemon, afterWrites: 0, downMs: 100 } },
      { afterMs: 50, action: { ...edit, side: 'host', value: this.#value() } },
    ];
  }

  /** An edit is undone by a backup, and the next one gets its version. */
  #restoredEdit(): Scene {
    const plural = this.#areEndpoints() ? 'endpoints' : 'endpointslices';
    const object = this.#below(VIRTUAL_NAMES.length);
    const side = this.#side();
    const edit = { kind: 'annotate', plural, object, side, key: this.#key() } as const;
    return [
      { afterMs: 0, action: this.#put(plural, object) },
      { afterMs: 3000, action: { ...edit, value: this.#valueOrNull() } },
      { afterMs: 3000, action: { ...this.#restore(), side, revisions: 1 + this.#below(5) } },
      { afterMs: this.#random() * 3000, action: { ...edit, value: this.#value() } },
    ];
  }

  /** Users edit objects immediately before a daemon is paused until another one holds its Lease. */
  #pausedLeader(): Scene {
    const daemon = this.#below(this.#options.daemons);
    const plural = this.#areEndpoints() ? 'endpoints' : 'endpointslices';
    const puts = [...VIRTUAL_NAMES.keys()].map((object) => ({
      afterMs: this.#random() * 8,
      action: this.#put(plural, object),
    }));
    const forMs = 20_000 + this.#random() * 20_000;
    return [...puts, { afterMs: this.#random() * 10, action: { kind: 'pause', daemon, forMs } }];
  }

  /** A user of the virtual cluster edits what was imported from the host. */
  #editedImport(): Scene {
    const plural: ReferencedPlural = this.#random() < 0.5 ? 'secrets' : 'configmaps';
    const [object, name] = [this.#below(VIRTUAL_NAMES.length), this.#one(REFERENCE_NAMES.slice(0, 2))];
    const namespace = VIRTUAL_NAMES[object]?.namespace ?? '';
    const referenced = { kind: 'object', plural, namespace, name, place: 'name', form: 'plain' } as const;
    const referrer = this.#put(this.#areEndpoints() ? 'endpoints' : 'endpointslices', object);
    const annotations = { ...referrer.annotations, [plural === 'secrets' ? SECRET : CONFIG]: name };
    return [
      { afterMs: 0, action: { ...referenced, side: 'host', value: this.#value() } },
      { afterMs: this.#random() * 20, action: { ...referrer, annotations } },
      { afterMs: this.#random() * 5000, action: { ...referenced, side: 'virtual', value: this.#value() } },
    ];
  }

  /** A user of the virtual cluster creates a ConfigMap while it is imported from the host, and its event is late. */
  #takenImport(): Scene {
    const [object, name] = [this.#below(VIRTUAL_NAMES.length), this.#one(REFERENCE_NAMES.slice(0, 2))];
    const namespace = VIRTUAL_NAMES[object]?.namespace ?? '';
    const referenced = { kind: 'object', plural: 'configmaps', namespace, name, place: 'name' } as const;
    const absent = { ...referenced, form: 'absent', value: '' } as const;
    const referrer = this.#put(this.#areEndpoints() ? 'endpoints' : 'endpointslices', object);
    const annotations = { ...referrer.annotations, [CONFIG]: name };
    const plain = (side: Side): Action => ({ ...referenced, side, form: 'plain', value: this.#value() });
    return [
      { afterMs: 0, action: { ...absent, side: 'host' } },
      { afterMs: 0, action: { ...absent, side: 'virtual' } },
      { afterMs: 0, action: { ...referrer, annotations } },
      { afterMs: 3000, action: { kind: 'trouble', forMs: 2000, rates: { ...CALM, latencyMaxMs: 300 } } },
      { afterMs: 0, action: plain('host') },
      { afterMs: this.#random() * 600, action: plain('virtual') },
    ];
  }

  #map(keys: readonly string[], share: number): StringMap {
    return Object.fromEntries(keys.filter(() => this.#random() < share).map((key) => [key, this.#value()]));
  }

  /** A Secret or ConfigMap that an annotation may name. */
  #object(): Action {
    const plural: ReferencedPlural = this.#random() < 0.6 ? 'secrets' : 'configmaps';
    const side = this.#side();
    return {
      kind: 'object',
      side,
      plural,
      namespace: this.#one(VIRTUAL_NAMESPACES.slice(0, 2)),
      name: this.#one(REFERENCE_NAMES),
      place: side === 'host' && this.#random() < 0.4 ? 'target' : 'name',
      form: this.#one(['plain', 'plain', 'plain', 'immutable', 'forbidden', 'absent', 'absent'] as const),
      value: this.#value(),
    };
  }

  /** What other clients do to the objects that the daemon works with. */
  #interference(): Action {
    const [plural, object, side] = [this.#plural(), this.#below(VIRTUAL_NAMES.length), this.#side()];
    const roll = this.#random();
    if (roll < 0.3)
      return {
        kind: 'service',
        side,
        object,
        form: this.#one(['selector', 'plain', 'unmarked', 'absent'] as const),
      };
    if (roll < 0.42) return { kind: 'foreign', plural, object, isReplacing: this.#random() < 0.2 };
    if (roll < 0.5)
      return { kind: 'clone', plural, object, at: this.#random() < 0.6 ? this.#below(5) : null };
    if (roll < 0.64)
      return { kind: 'damage', plural, object, key: this.#one(DAMAGED), value: this.#valueOrNull() };
    if (roll < 0.74) return { kind: 'optOut', plural, side, object, isOut: this.#random() < 0.5 };
    if (roll < 0.84) return { kind: 'finalizer', plural, side, object, isSet: this.#random() < 0.6 };
    if (roll < 0.86) return { kind: 'restartController', side };
    if (roll < 0.88) return { kind: 'fight', plural, object, times: 4 + this.#below(10) };
    if (roll < 0.94) return this.#namespace(side);
    return this.#options.settings.hasOwner ? { kind: 'recreateOwner' } : { kind: 'restartController', side };
  }

  #namespace(side: Side): Action {
    const name = side === 'host' ? HOST_NAMESPACE : this.#one(VIRTUAL_NAMESPACES);
    return { kind: 'namespace', side, name, forMs: 200 + this.#random() * 30_000 };
  }

  #trouble(): Action {
    const { daemons, settings } = this.#options;
    const roll = this.#random();
    const daemon = this.#below(daemons);
    if (roll < 0.3)
      return { kind: 'trouble', forMs: this.#random() * 20_000, rates: drawRates(this.#random) };
    if (roll < 0.42) return { kind: 'compact', side: this.#side() };
    if (roll > 0.97) return this.#restore();
    if (roll < 0.62) {
      const downMs = this.#random() * 5000;
      return { kind: 'crash', daemon, afterWrites: this.#below(4), downMs };
    }
    if (roll < 0.68) return { kind: 'restart', daemon, downMs: this.#random() * 5000 };
    if (roll < 0.78) return { kind: 'pause', daemon, forMs: this.#random() * 60_000 };
    if (roll < 0.84) return { kind: 'clockJump', daemon, byMs: (this.#random() - 0.5) * 2 * 86_400_000 };
    if (roll < 0.88 && settings.hasLeaderElection) return { kind: 'deleteLease' };
    return this.#configure();
  }

  /** Until the server is back, a daemon has tried in vain to reach it, or the last event is long ago. */
  #restore(): Extract<Action, { kind: 'restore' }> {
    const revisions = 1 + this.#below(60);
    const outage = this.#random() < 0.5 ? 'refused' : 'proxied';
    const downMs = 6000 + this.#random() * 20_000;
    return { kind: 'restore', side: this.#side(), revisions, downMs, outage, passes: this.#random() < 0.6 };
  }

  #configure(): Action {
    const roll = this.#random();
    const isRestart = this.#random() < 0.4;
    const isOn = this.#random() < 0.6;
    if (roll < 0.4) return { kind: 'configure', settings: { isPatched: isOn }, isRestart };
    if (roll < 0.6) return { kind: 'configure', settings: { hasReferences: isOn }, isRestart };
    // Something is always synced.
    if (roll < 0.75 && this.#options.settings.areEndpointsSynced)
      return { kind: 'configure', settings: { areSlicesSynced: isOn }, isRestart };
    if (roll < 0.8 && this.#options.settings.areServicesSynced)
      return { kind: 'configure', settings: { areServicesSynced: isOn }, isRestart };
    if (roll < 0.9) return { kind: 'configure', settings: { isMapped: isOn }, isRestart };
    return { kind: 'configure', settings: { naming: isOn ? 'short' : 'long' }, isRestart: true };
  }

  #plural(): SyncedPlural {
    const { areSlicesSynced, areServicesSynced } = this.#options.settings;
    if (areServicesSynced && this.#random() < 0.4) return 'services';
    if (!this.#areEndpoints()) return 'endpointslices';
    return areSlicesSynced && this.#random() < 0.4 ? 'endpointslices' : 'endpoints';
  }

  #areEndpoints(): boolean {
    return this.#options.settings.areEndpointsSynced;
  }

  #key(): string {
    return this.#one(KEYS);
  }

  #side(): Side {
    return this.#random() < 0.5 ? 'virtual' : 'host';
  }

  #value(): string {
    return `v${this.#below(1000)}`;
  }

  #valueOrNull(): string | null {
    return this.#random() < 0.3 ? null : this.#value();
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #one<T>(items: readonly T[]): T {
    const item = items[this.#below(items.length)];
    if (item === undefined) throw new Error('there is nothing to choose from');
    return item;
  }
}

/** Some kinds of faults, for a while. */
export function drawRates(random: Random): FaultRates {
  const rate = (max: number): number => (random() < 0.4 ? random() * max : 0);
  return {
    refused: rate(0.4),
    lostAnswers: rate(0.5),
    garbled: rate(0.3),
    hung: rate(0.1),
    rejected: rate(0.3),
    staleLists: rate(0.5),
    eventsTwice: rate(0.3),
    eventsReplayed: rate(0.3),
    briefWatches: rate(0.8),
    stalledWatches: rate(0.5),
    sandboxStops: rate(0.3),
    latencyMaxMs: 10 + random() * 500,
  };
}
