/** Edits of single annotations, and the expected result of each when everything has settled: none is lost on either side. */

import type { KubeObject, ObjectKey } from '../../../src/kube/object.ts';
import type { Operation } from '../history/operations.ts';
import { VIRTUAL_NAMES } from '../world/names.ts';
import { FORWARD, TEAM } from '../daemon/sim-config.ts';
import { KEYS } from '../history/draw.ts';

/** A daemon that could not reach a server has listed it this long after it is back. */
const LIST_MS = 60_000;

interface Intent {
  readonly side: 'virtual' | 'host';
  /** What the virtual object has to hold; undefined: no such annotation. */
  readonly value: string | undefined;
  /** Both sides agreed before this edit on the host. */
  readonly isFromAgreement?: boolean;
}

/** A synced object: `plural` and the index of its name. */
type ObjectId = string;

export interface HostPlace {
  readonly plural: string;
  readonly key: ObjectKey;
}

export interface EditWorld {
  readonly isPatched: boolean;
  /** A daemon has crashed or was paused, or there are two. */
  readonly isInterrupted: boolean;
  /** Every object with the host name of this one, itself included. */
  rivals(object: ObjectId): readonly ObjectId[];
  /** Every object whose copy belongs there. */
  objectsAt(hostPlace: HostPlace): readonly ObjectId[];
  virtual(object: ObjectId): KubeObject | undefined;
  host(object: ObjectId): KubeObject | undefined;
  /** The copy holds everything that the virtual object says. */
  isInStep(object: ObjectId): boolean;
  /** The host object is the copy of exactly this virtual object, created by the program and not damaged. */
  isWholePair(object: ObjectId): boolean;
}

export class Edits {
  readonly #intents = new Map<string, Intent>();
  /** The virtual value when both sides agreed last. */
  readonly #agreed = new Map<string, string | undefined>();
  /** After a restore, the last agreement may be any earlier one. */
  #isAgreementUnknown = false;

  /** A restored copy may have lost its record of what both sides agreed on, so that the virtual side wins. */
  #isHostRestored = false;
  /** When the daemons have listed a restored virtual cluster: before, they may not know that it has changed. */
  #listedAtMs = -Infinity;
  /** Until when the host's admission removes the record of copies of this kind, without which the virtual side wins. */
  readonly #strippedUntilMs = new Map<string, number>();

  /** Before an operation is performed. */
  note(operation: Operation, world: EditWorld): void {
    const id = 'object' in operation && 'plural' in operation ? idOf(operation) : undefined;
    if (id !== undefined) this.#noteAgreement(id, keysOf(operation), world);
    if (
      id !== undefined &&
      'side' in operation &&
      operation.side === 'virtual' &&
      operation.kind !== 'finalizer'
    )
      this.#forgetUncertain(id, world);
    switch (operation.kind) {
      case 'annotate':
        return this.#annotated(operation, world);
      case 'service':
        return this.#forgetService(operation.object, world);
      case 'putService':
        return this.#forgetService(operation.object, world);
      case 'restore':
        if (operation.side === 'host') this.#isHostRestored = true;
        else this.#listedAtMs = operation.atMs + 2 * operation.downMs + LIST_MS;
        this.#agreed.clear();
        this.#isAgreementUnknown = true;
        return this.#intents.clear();
      case 'admission':
        if (operation.form === 'strips')
          this.#strippedUntilMs.set(operation.plural, operation.atMs + operation.forMs);
        return;
      case 'configure':
      case 'namespace':
      case 'recreateOwner':
      case 'restartController':
        return this.#intents.clear();
      case 'finalizer':
        // A finalizer that is not there changes nothing.
        if (world[operation.side](idOf(operation))?.metadata['finalizers'] !== undefined || operation.isSet)
          this.#forget(idOf(operation), world);
        return;
      case 'addresses':
      case 'label':
        // Of a slice, a label decides whether it is synced.
        if (operation.plural !== 'endpointslices') return;
        return this.#forget(idOf(operation), world);
      case 'forge':
        return this.#forged(operation, world);
      default:
        if (id !== undefined) this.#forget(id, world);
    }
  }

  #annotated(operation: AnnotateOperation, world: EditWorld): void {
    const id = idOf(operation);
    if (operation.side === 'virtual') return this.#onVirtual(id, operation, world);
    for (const rival of world.rivals(id)) this.#onHost(rival, operation, world);
  }

  /** What a tenant writes stays its own, whatever the bookkeeping says that it writes beside it. */
  #forged(operation: ForgeOperation, world: EditWorld): void {
    const id = idOf(operation);
    this.#forget(id, world);
    for (const [key, value] of Object.entries(operation.annotations))
      this.#intents.set(`${id}|${key}`, { side: 'virtual', value });
  }

  /** Another client has deleted the copy: an edit of it that the daemon had not seen is lost with it. */
  copyDeleted(hostPlace: HostPlace, world: EditWorld): void {
    const objects = world.objectsAt(hostPlace);
    for (const [id, { side }] of this.#intents)
      if (side === 'host' && objects.includes(id.split('|')[0] ?? '')) this.#intents.delete(id);
  }

  /** Endpoints or slices of this namespace decide about its Services. */
  gateChanged(namespace: string, world: EditWorld): void {
    for (const [object, name] of VIRTUAL_NAMES.entries())
      if (name.namespace === namespace) this.#forget(idOf({ plural: 'services', object }), world);
  }

  /** Another syncer interferes, so that nothing is certain. */
  clear(): void {
    this.#intents.clear();
  }

  /** What was lost, in words. */
  lost(world: EditWorld): string[] {
    return [...this.#intents].flatMap(([id, { side, value }]) => {
      const [object = '', key = ''] = id.split('|');
      const virtual = world.virtual(object);
      if (virtual === undefined || !world.isWholePair(object)) return [];
      const actual = virtual.metadata.annotations?.[key];
      if (actual === value) return [];
      return [`the edit of ${key} on the ${side} side of ${object} is lost: ${value} became ${actual}`];
    });
  }

  #onVirtual(object: ObjectId, { key, value }: AnnotateOperation, world: EditWorld): void {
    const id = `${object}|${key}`;
    const virtual = world.virtual(object);
    if (virtual === undefined) return;
    const current = virtual.metadata.annotations?.[key];
    if (current === (value ?? undefined)) return;
    const pending = this.#intents.get(id);
    // Several edits on the host are under way: which of them this one may undo depends on what the daemon has seen. A single one loses.
    const isUnderWay = pending?.side === 'host' && pending.value !== current;
    const isUncertain = isUnderWay && pending.isFromAgreement !== true;
    if (isUncertain || isCarriedOver(object, key, world) || this.#isRestored(object, { key, value }, world))
      this.#intents.delete(id);
    else this.#intents.set(id, { side: 'virtual', value: value ?? undefined });
  }

  #onHost(object: ObjectId, operation: AnnotateOperation, world: EditWorld): void {
    const { key, value } = operation;
    const id = `${object}|${key}`;
    const [virtual, host] = [world.virtual(object), world.host(object)];
    // A change of the virtual side is on its way: see forgetUncertain.
    const isBehind = operation.atMs < this.#listedAtMs || !world.isInStep(object);
    const isStripped = operation.atMs < (this.#strippedUntilMs.get(operation.plural) ?? -Infinity);
    const isUncertain = this.#isHostRestored || isStripped || (world.isInterrupted && isBehind);
    if (virtual === undefined || host === undefined || !world.isWholePair(object) || isUncertain) {
      this.#intents.delete(id);
      return;
    }
    const { isPatched } = world;
    if (isPatched && key === FORWARD) return;
    const expected = forward(virtual.metadata.annotations?.[key], { key, isPatched });
    const isInStep = host.metadata.annotations?.[key] === expected;
    if (isInStep && host.metadata.annotations?.[key] === (value ?? undefined)) return;
    const back = value !== null && isPatched && key === TEAM ? value.replace(/^team-/, '') : value;
    const pending = this.#intents.get(id);
    if (isInStep || pending?.side === 'host')
      this.#intents.set(id, { side: 'host', value: back ?? undefined, isFromAgreement: isInStep });
    else this.#intents.delete(id);
  }

  #noteAgreement(object: ObjectId, keys: readonly string[], world: EditWorld): void {
    const [virtual, host] = [world.virtual(object), world.host(object)];
    if (virtual === undefined || host === undefined) return;
    for (const key of keys) {
      const value = virtual.metadata.annotations?.[key];
      const expected = forward(value, { key, isPatched: world.isPatched });
      if (host.metadata.annotations?.[key] === expected) this.#agreed.set(`${object}|${key}`, value);
    }
  }

  /** The virtual side is, or may be, as it was before the host was edited: a daemon that has not seen it change in between decides for the host. */
  #isRestored(object: ObjectId, { key, value }: KeyValue, world: EditWorld): boolean {
    const id = `${object}|${key}`;
    const host = world.host(object);
    const { isPatched } = world;
    if (isPatched && key === FORWARD) return false;
    const isAgreed = this.#agreed.has(id)
      ? this.#agreed.get(id) === (value ?? undefined)
      : this.#isAgreementUnknown;
    if (host === undefined || !isAgreed) return false;
    const expected = forward(value ?? undefined, { key, isPatched });
    return host.metadata.annotations?.[key] !== expected;
  }

  /** It decides about the Endpoints of its name, and may decide about any slice of its namespace. */
  #forgetService(service: number, world: EditWorld): void {
    for (const plural of ['endpoints', 'services']) this.#forget(idOf({ plural, object: service }), world);
    for (const [object, { namespace }] of VIRTUAL_NAMES.entries())
      if (namespace === VIRTUAL_NAMES[service]?.namespace)
        this.#forget(idOf({ plural: 'endpointslices', object }), world);
  }

  #forget(object: ObjectId, world: EditWorld): void {
    const rivals = world.rivals(object);
    for (const id of this.#intents.keys())
      if (rivals.includes(id.split('|')[0] ?? '')) this.#intents.delete(id);
  }

  /**
   * A daemon that finds an incoming value recorded, the virtual side at its base and at another version than the record cannot know whether
   * the value arrived and was changed back. It decides for the virtual side.
   */
  #forgetUncertain(object: ObjectId, world: EditWorld): void {
    if (!world.isInterrupted) return;
    const annotations = world.virtual(object)?.metadata.annotations ?? {};
    for (const [id, { side, value }] of this.#intents) {
      const [owner, key = ''] = id.split('|');
      if (owner === object && side === 'host' && annotations[key] !== value) this.#intents.delete(id);
    }
  }
}

type KeyValue = Pick<AnnotateOperation, 'key' | 'value'>;
type AnnotateOperation = Extract<Operation, { kind: 'annotate' }>;
type ForgeOperation = Extract<Operation, { kind: 'forge' }>;

export function idOf({ plural, object }: { readonly plural: string; readonly object: number }): ObjectId {
  return `${plural} ${object}`;
}

function keysOf(operation: Operation): readonly string[] {
  if ('annotations' in operation) return KEYS;
  return operation.kind === 'annotate' ? [operation.key] : [];
}

/** What the copy holds for a virtual value. */
function forward(
  value: string | undefined,
  { key, isPatched }: { readonly key: string; readonly isPatched: boolean },
): string | undefined {
  if (value === undefined || !isPatched) return value;
  if (key === TEAM) return `team-${value}`;
  return key === FORWARD ? `[${value}]` : value;
}

/** Another syncer has carried the virtual value over to the host, and no daemon has seen that: once the virtual side changes, it is a value of the host. */
function isCarriedOver(object: ObjectId, key: string, world: EditWorld): boolean {
  const [own, copied] = [world.virtual(object), world.host(object)].map((one) => one?.metadata.annotations);
  const managed = copied?.['vcluster.loft.sh/managed-annotations']?.split('\n') ?? [];
  return own?.[key] !== undefined && own[key] === copied?.[key] && !managed.includes(key);
}
