/** A sync without clusters: makes the decisions and copies of the daemon for given objects. */

import { keyOf, objectKey, type KubeObject, type NamespacedName, type ObjectKey } from '../kube/object.ts';
import { hasSelector, type GateOptions } from './kinds/kind.ts';
import type { ObjectReference } from './patch/types.ts';
import { LAST_SYNCED } from './translate/metadata/bookkeeping.ts';
import { backTranslate } from './translate/forge.ts';
import { ownershipOf, virtualOf } from './translate/metadata/ownership.ts';
import {
  createCopyForge,
  RefusedCopy,
  reverseObject,
  type CopyForge,
  type CopyForgeOptions,
} from './reconcile/copy-forge.ts';
import { claimOf, decide, type Claim, type Observation, type Refusal } from './reconcile/decide/decide.ts';
import type { OfflineImport } from './references/offline-references.ts';

export interface RenderWorld {
  readonly virtual: readonly KubeObject[];
  readonly host: readonly KubeObject[];
}

export interface RenderOptions extends CopyForgeOptions {
  readonly decide: GateOptions;
  /** The imports for the references of all rendered objects. Undefined: references are not imported. */
  readonly imports?: (references: readonly ObjectReference[]) => readonly OfflineImport[];
  /** Called after each object, for progress. */
  readonly onRendered?: () => void;
}

/** The result for one object, in the order of the input. */
export type Rendered =
  | { readonly kind: 'object'; readonly object: KubeObject }
  | { readonly kind: 'skipped'; readonly of: string; readonly key: ObjectKey; readonly reason: string }
  /** `of`: the kind of the object. */
  | { readonly kind: 'failed'; readonly of: string; readonly key: ObjectKey; readonly error: unknown }
  | Extract<OfflineImport, { readonly kind: 'refused' }>
  /** An object that would be written to the other cluster. */
  | { readonly kind: 'elsewhere'; readonly object: KubeObject };

/** The host objects after a sync of `world.virtual` to `world.host`. */
export async function renderToHost(world: RenderWorld, options: RenderOptions): Promise<Rendered[]> {
  const { kind } = options;
  const virtual = byKey(world.virtual, kind.resource.kind);
  const services = byKey(world.virtual, 'Service');
  const host = byKey(world.host, kind.resource.kind);
  const hostServices = byKey(world.host, 'Service');
  const references: ObjectReference[] = [];
  const forge = recordingForge(createCopyForge(options), references);
  const claims = claimsByHostKey(virtual, services, options);
  const rendered: Promise<Rendered>[] = [];
  for (const [key, object] of virtual) {
    const target = options.names.toHost(nameOf(object));
    const hostKey = target && keyOf(target);
    const hostObject = hostKey === undefined ? undefined : host.get(hostKey);
    const seen: Observation = {
      key,
      virtual: object,
      service: serviceOf(key, object, services, options),
      target,
      host: hostObject,
      ownership: hostObject && ownershipOf(hostObject, kind.resource, options.names, nameOf(object)),
      strays: [],
      claims: (hostKey === undefined ? undefined : claims.get(hostKey)) ?? [],
      // A host object without annotations counts as the copy.
      hasForeignService: hostObject !== undefined && options.foreignService(hostObject) !== undefined,
      isKnownCopy: hostObject !== undefined && hostObject.metadata.annotations === undefined,
    };
    const hostService = hostKey === undefined ? undefined : hostServices.get(hostKey);
    rendered.push(
      guarded({ of: kind.resource.kind, key }, options, () => renderOne(seen, hostService, forge, options)),
    );
  }
  return [...(await Promise.all(rendered)), ...importsOf(references, 'to-host', options)];
}

/** Records the references of all copies. */
function recordingForge(forge: CopyForge, references: ObjectReference[]): CopyForge {
  return {
    async fresh(pair) {
      const copy = await forge.fresh(pair);
      references.push(...copy.references);
      return copy;
    },
    async merged(pair, arrival) {
      const copy = await forge.merged(pair, arrival);
      references.push(...copy.references);
      return copy;
    },
  };
}

function importsOf(
  references: readonly ObjectReference[],
  direction: 'to-host' | 'to-virtual',
  options: RenderOptions,
): Rendered[] {
  return (options.imports?.(references) ?? []).map((one) => {
    if (one.kind === 'refused') return one;
    return { kind: one.kind === direction ? 'object' : 'elsewhere', object: one.object };
  });
}

async function renderOne(
  seen: Observation,
  hostService: KubeObject | undefined,
  forge: CopyForge,
  options: RenderOptions,
): Promise<Rendered> {
  const { key, virtual, target, host } = seen;
  const of = options.kind.resource.kind;
  const decision = decide(seen, { ...options.decide, kind: options.kind });
  if (
    virtual === undefined ||
    target === undefined ||
    decision.kind === 'ignore' ||
    decision.kind === 'delete'
  ) {
    return { kind: 'skipped', of, key, reason: 'reason' in decision ? decision.reason : decision.kind };
  }
  const pair = { virtual, target, host };
  switch (decision.kind) {
    case 'refuse':
      return { kind: 'skipped', of, key, reason: reasonOf(decision) };
    case 'takeOver':
      if (hostService !== undefined && hasSelector(hostService))
        return { kind: 'skipped', of, key, reason: 'host Service has a selector' };
      return { kind: 'object', object: (await forge.fresh(pair)).host };
    case 'create':
    case 'rewrite':
      return { kind: 'object', object: (await forge.fresh(pair)).host };
    case 'update': {
      const merged = host && (await forge.merged({ ...pair, host }));
      return { kind: 'object', object: merged?.host ?? host ?? virtual };
    }
  }
}

/** The virtual objects after the changes in `world.host` have been synced back. If a host object has no sync record, every difference from
 * the translation counts as a change on the host. If there is no virtual object, the whole host object is translated back.
 */
export async function renderToVirtual(world: RenderWorld, options: RenderOptions): Promise<Rendered[]> {
  const { resource } = options.kind;
  const virtual = byKey(world.virtual, resource.kind);
  const references: ObjectReference[] = [];
  const forge = recordingForge(createCopyForge(options), references);
  const hostObjects = [...byKey(world.host, resource.kind).values()];
  const rendered = await Promise.all(
    hostObjects.map((host) =>
      guarded({ of: resource.kind, key: objectKey(host) }, options, async () => {
        const name = virtualOf(host, resource, options.names);
        if (name === undefined) {
          return {
            kind: 'skipped',
            of: resource.kind,
            key: objectKey(host),
            reason: 'it is not a copy from this virtual cluster',
          };
        }
        const original = virtual.get(keyOf(name));
        const object = original
          ? await flowBack(original, host, forge, options)
          : await translateBack(name, host, options);
        return { kind: 'object', object };
      }),
    ),
  );
  return [...rendered, ...importsOf(references, 'to-virtual', options)];
}

async function flowBack(
  virtual: KubeObject,
  host: KubeObject,
  forge: CopyForge,
  { names }: RenderOptions,
): Promise<KubeObject> {
  const target = names.toHost(nameOf(virtual)) ?? nameOf(host);
  const annotations = { ...host.metadata.annotations };
  if (annotations[LAST_SYNCED] === undefined) {
    const synced = (await forge.fresh({ virtual, target, host })).host;
    const record = synced.metadata.annotations?.[LAST_SYNCED];
    if (record !== undefined) annotations[LAST_SYNCED] = record;
  }
  const recorded = { ...host, metadata: { ...host.metadata, annotations } };
  return (await forge.merged({ virtual, target, host: recorded })).virtual;
}

async function translateBack(
  name: NamespacedName,
  host: KubeObject,
  options: RenderOptions,
): Promise<KubeObject> {
  const reversed = await reverseObject(host, undefined, name.namespace, options.pipeline);
  return backTranslate(reversed, name, { ...options, content: options.kind.content });
}

async function guarded(
  subject: { readonly of: string; readonly key: ObjectKey },
  { onRendered }: RenderOptions,
  render: () => Promise<Rendered>,
): Promise<Rendered> {
  try {
    return await render();
  } catch (error) {
    if (error instanceof RefusedCopy) return { kind: 'skipped', ...subject, reason: reasonOf(error.refusal) };
    return { kind: 'failed', ...subject, error };
  } finally {
    onRendered?.();
  }
}

function reasonOf({ reason, note }: Refusal): string {
  return `${reason}: ${note}`;
}

function claimsByHostKey(
  virtual: ReadonlyMap<ObjectKey, KubeObject>,
  services: ReadonlyMap<ObjectKey, KubeObject>,
  options: RenderOptions,
): ReadonlyMap<ObjectKey, readonly Claim[]> {
  const claims = new Map<ObjectKey, Claim[]>();
  for (const [key, object] of virtual) {
    const target = options.names.toHost(nameOf(object));
    if (target === undefined) continue;
    const decideOptions = { ...options.decide, kind: options.kind };
    const claim = claimOf(object, serviceOf(key, object, services, options), decideOptions);
    claims.set(keyOf(target), [...(claims.get(keyOf(target)) ?? []), claim]);
  }
  return claims;
}

function serviceOf(
  key: ObjectKey,
  object: KubeObject,
  services: ReadonlyMap<ObjectKey, KubeObject>,
  { kind }: RenderOptions,
): KubeObject | undefined {
  const serviceKey = kind.serviceKey(key, object);
  return serviceKey === undefined ? undefined : services.get(serviceKey);
}

function byKey(objects: readonly KubeObject[], kind: string): Map<ObjectKey, KubeObject> {
  return new Map(
    objects.filter((object) => object.kind === kind).map((object) => [objectKey(object), object]),
  );
}

function nameOf({ metadata: { name, namespace = '' } }: KubeObject): NamespacedName {
  return { name, namespace };
}
