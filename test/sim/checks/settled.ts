/** What must hold when faults are off and the clock has run on: the two clusters against the naive model. */

import { keyOf, objectKey, type KubeObject } from '../../../src/kube/object.ts';
import { SYNCED_PLURALS, type ReferencedPlural, type SyncedPlural } from '../history/operations.ts';
import {
  CONTROLLER_MANAGER,
  hasSelector,
  MANAGED_BY,
  MIRRORING,
  SERVICE_NAME,
  SLICE_CONTROLLER,
} from '../world/host-controllers.ts';
import { hostKeyOf, MAPPED_NAMESPACE, referencePlaceOf } from '../world/names.ts';
import { serviceSpec } from '../world/service-storage.ts';
import {
  differences,
  expectedReference,
  hostKeyOfObject,
  isLeftEchoed,
  isMirrored,
  isOptedOut,
  REFERENCE_KEYS,
  rivalsOf,
  wantsCopy,
  type World,
} from './naive-model.ts';

const SKIP_BACKSYNC = 'vcluster.loft.sh/skip-backsync';

export function settledProblems(world: World): string[] {
  return [
    ...SYNCED_PLURALS.flatMap((plural) => [
      ...world.virtual.list(plural).flatMap((virtual) => wrongCopy(plural, virtual, world)),
      ...orphans(plural, world),
    ]),
    ...wrongImports(world),
    ...unexplained(world),
  ];
}

/** Every virtual object that wants a copy has exactly the right one, unless a foreign object holds its place. */
function wrongCopy(plural: SyncedPlural, virtual: KubeObject, world: World): string[] {
  const rivals = rivalsOf(plural, virtual, world);
  const wanting = rivals.filter((rival) => wantsCopy(plural, rival, world));
  if (!wanting.includes(virtual)) return [];
  const copy = world.host.get(plural, hostKeyOfObject(virtual, world.settings));
  if (copy !== undefined && isOptedOut(copy)) return [];
  // The copy of an object that opted out stays as it is, and holds the name.
  if (rivals.some(isOptedOut)) return [];
  if (copy !== undefined && !world.isOurs(copy)) return foreignHolder(virtual, copy, world);
  if (copy !== undefined && !isRecognisable(plural, copy, world)) return [];
  if (copy !== undefined && ((isMirrored(copy) && !isNamed(virtual, copy)) || isOfAnother(virtual, copy)))
    return isTold(virtual, ['NotManaged', 'NameConflict'], world);
  const name = `${plural} ${objectKey(virtual)}`;
  // Its own Service is not the one that vCluster has written: it gets the name back with a copy, which the Service of another keeps away.
  if (copy === undefined && world.isCopiedBack(virtual, SERVICE_NAME))
    return isTold(virtual, ['NotManaged'], world);
  if (copy === undefined) return [`${name} has no copy`];
  const problems = wanting.map((rival) => differences(copy, rival, world));
  if (world.settings.hasReferences && problems[0]?.some(isOfReference) && isFailed(virtual, world)) return [];
  const holder = problems.findIndex((found) => found.length === 0);
  if (holder < 0) return [`copy of ${name}: ${problems[0]?.join('; ')}`];
  return wanting[holder] === virtual
    ? referenceProblems(virtual, world)
    : isTold(virtual, ['NameConflict', 'NotManaged'], world);
}

/** A user has removed the name from the bookkeeping, and what is left of it names another namespace. */
function isOfAnother({ metadata }: KubeObject, { metadata: { annotations = {} } }: KubeObject): boolean {
  const namespace = annotations['vcluster.loft.sh/object-namespace'] ?? metadata.namespace;
  return annotations['vcluster.loft.sh/object-name'] === undefined && namespace !== metadata.namespace;
}

/** What another syncer or a user wrote on the host is the name of no object, so that nothing is synced until the user corrects it. */
function isFailed(virtual: KubeObject, world: World): boolean {
  return isTold(virtual, ['PatchFailed'], world).length === 0;
}

function isOfReference(difference: string): boolean {
  return Object.keys(REFERENCE_KEYS).some((key) => difference.includes(`annotation ${key} is `));
}

function isNamed({ metadata }: KubeObject, { metadata: { annotations = {} } }: KubeObject): boolean {
  const name = annotations['vcluster.loft.sh/object-name'];
  return name === metadata.name && annotations['vcluster.loft.sh/object-namespace'] === metadata.namespace;
}

/** Other clients removed the marker and some of the bookkeeping: after a restart, the copy is like any other object. */
function isRecognisable(
  plural: SyncedPlural,
  { metadata: { name, namespace = '', annotations = {}, labels = {} } }: KubeObject,
  world: World,
): boolean {
  const members = [
    'object-name',
    'object-namespace',
    'object-kind',
    'object-host-name',
    'object-host-namespace',
  ];
  // One that names another host object is taken for a clone.
  const isWhole =
    members.every((member) => annotations[`vcluster.loft.sh/${member}`] !== undefined) &&
    statedPlace(annotations, world) === keyOf({ namespace, name });
  const isMarked = labels['vcluster.loft.sh/managed-by'] !== undefined;
  const isRecorded = isMarked && annotations['endpoint-syncer/last-synced'] !== undefined;
  // A copy that names another host object may be a clone, unless its own object is there.
  const isContradicted = (annotations['vcluster.loft.sh/object-host-name'] ?? name) !== name;
  return isContradicted
    ? isRecorded && objectOf(plural, annotations, world) !== undefined
    : isWhole || isRecorded;
}

/** Where the copy of the object belongs that the bookkeeping names. */
function statedPlace(annotations: Readonly<Record<string, string>>, { settings }: World): string {
  const name = annotations['vcluster.loft.sh/object-name'] ?? '';
  const namespace = annotations['vcluster.loft.sh/object-namespace'] ?? '';
  return hostKeyOf({ namespace, name }, settings);
}

/** That the bookkeeping names. */
function objectOf(
  plural: SyncedPlural,
  annotations: Readonly<Record<string, string>>,
  { virtual }: World,
): KubeObject | undefined {
  const name = annotations['vcluster.loft.sh/object-name'];
  return virtual.get(plural, `${annotations['vcluster.loft.sh/object-namespace']}/${name}`);
}

const BOOKKEEPING = 'vcluster.loft.sh/object-';

/** What the host's endpoints controller left behind is taken over once the host Service has no selector any more; the rest is foreign, and so is
 * what another client has marked as a copy. */
function foreignHolder(virtual: KubeObject, host: KubeObject, world: World): string[] {
  const isClaimed = host.metadata.annotations?.[`${BOOKKEEPING}name`] !== undefined;
  const isLeftBehind =
    host.kind === 'Endpoints' &&
    !isClaimed &&
    (host.metadata.managedFields ?? []).some(({ manager }) => manager === CONTROLLER_MANAGER);
  if (!isLeftBehind || world.virtual.get('services', objectKey(virtual)) === undefined)
    return isTold(virtual, ['NotManaged', 'NameConflict'], world);
  const isAtWork = hasSelector(world.host.get('services', objectKey(host)));
  return isAtWork ? [] : [`${objectKey(host)} of the endpoints controller is not taken over`];
}

/** An Event with one of these reasons is on the object. */
function isTold({ metadata }: KubeObject, reasons: readonly string[], { virtual }: World): string[] {
  const isAbout = (event: KubeObject): boolean =>
    (event['regarding'] as { uid?: string }).uid === metadata.uid &&
    reasons.includes(event['reason'] as string); // an Event
  return virtual.list('events').some(isAbout)
    ? []
    : [`no Event ${reasons.join(' or ')} on ${metadata.namespace}/${metadata.name}`];
}

function referenceProblems(virtual: KubeObject, world: World): string[] {
  const references = referencesOf(virtual, world).map(([plural, name]) =>
    expectedReference(plural, name, world),
  );
  return references.flatMap(({ problem }) =>
    problem === undefined ? [] : isTold(virtual, [problem], world),
  );
}

function referencesOf(virtual: KubeObject, world: World) {
  const { metadata } = virtual;
  if (!world.settings.hasReferences || isLeftEchoed(virtual, world)) return [];
  const { namespace = '', annotations = {} } = metadata;
  return Object.entries(REFERENCE_KEYS).flatMap(([key, plural]) => {
    const name = annotations[key];
    return name === undefined ? [] : [[plural, { namespace, name }] as const];
  });
}

/** Every copy has its object. */
function orphans(plural: SyncedPlural, world: World): string[] {
  return world.host.list(plural).flatMap((copy) => {
    const { annotations = {}, labels = {}, namespace } = copy.metadata;
    if (!world.isOurs(copy) || isMirrored(copy) || isOptedOut(copy) || labels[SKIP_BACKSYNC] === 'true')
      return [];
    // Without its bookkeeping the owner of a copy is unknown, and a copy that is not watched any more stays.
    if (annotations['vcluster.loft.sh/object-name'] === undefined || !isRecognisable(plural, copy, world))
      return [];
    if (namespace === MAPPED_NAMESPACE && !world.settings.isMapped) return [];
    if (!isSynced(plural, world)) return [];
    // Only our record proves that a copy at an earlier place is ours, if it is no clone: if the bookkeeping has its name.
    const isProven =
      annotations['endpoint-syncer/last-synced'] !== undefined &&
      annotations['vcluster.loft.sh/object-host-name'] === copy.metadata.name;
    if (!isProven && statedPlace(annotations, world) !== objectKey(copy)) return [];
    if (isUnseen(copy, world)) return [];
    // That of an object that has opted out stays, also at the place of an earlier configuration.
    if (isOptedOut(objectOf(plural, annotations, world))) return [];
    const isWanted = world.virtual
      .list(plural)
      .filter((virtual) => hostKeyOfObject(virtual, world.settings) === objectKey(copy))
      .some((virtual) => wantsCopy(plural, virtual, world) || isOptedOut(virtual));
    return isWanted ? [] : [`${plural} ${objectKey(copy)} is a copy without its object`];
  });
}

/** Slices of controllers are not fetched: copies by the other syncer, and one of ours that got the label while no daemon led. */
function isUnseen(
  { metadata: { annotations = {}, labels = {} } }: KubeObject,
  { settings, isInterrupted }: World,
): boolean {
  const unfetched = [SLICE_CONTROLLER, ...(settings.areEndpointsSynced ? [MIRRORING] : [])];
  const isRecorded = annotations['endpoint-syncer/last-synced'] !== undefined;
  return (isInterrupted || !isRecorded) && unfetched.includes(labels[MANAGED_BY] ?? '');
}

function isSynced(plural: SyncedPlural, { settings }: World): boolean {
  const { areEndpointsSynced, areSlicesSynced, areServicesSynced } = settings;
  return { endpoints: areEndpointsSynced, endpointslices: areSlicesSynced, services: areServicesSynced }[
    plural
  ];
}

/** The user of a Service with a selector is told why it is not synced. */
function unexplained(world: World): string[] {
  if (!world.settings.areServicesSynced) return [];
  return world.virtual.list('services').flatMap((service) => {
    const isSelecting = hasSelector(service) && serviceSpec(service).type !== 'ExternalName';
    const isHeld = isOptedOut(service) || isOptedOut(hostCopyOf('services', service, world));
    return isSelecting && !isHeld ? isTold(service, ['NotSynced'], world) : [];
  });
}

/** Imports, both ways: those that are referenced hold what their originals hold, and there are no others. */
function wrongImports(world: World): string[] {
  const wanted = new Map<string, KubeObject>();
  const problems: string[] = [];
  for (const plural of SYNCED_PLURALS)
    for (const virtual of world.virtual.list(plural).filter((one) => holdsCopy(plural, one, world)))
      for (const [referenced, name] of referencesOf(virtual, world)) {
        const { isImported, target, source } = expectedReference(referenced, name, world);
        const [side, place, original] =
          isImported === 'to-host'
            ? (['host', target, world.virtual.get(referenced, `${name.namespace}/${name.name}`)] as const)
            : (['virtual', name, world.host.get(referenced, `${source.namespace}/${source.name}`)] as const);
        if (isImported === undefined || original === undefined) continue;
        const copy = world[side].get(referenced, `${place.namespace}/${place.name}`);
        const what = `import of ${referenced} ${name.namespace}/${name.name} into ${side}`;
        if (copy !== undefined) wanted.set(copy.metadata.uid ?? '', copy);
        // What an object that opted out references is left as it is.
        if (!wantsCopy(plural, virtual, world) || isOptedOut(hostCopyOf(plural, virtual, world))) continue;
        if ((world.areImportsContested || world.isBesideVcluster) && isFailed(virtual, world)) continue;
        if (copy === undefined) problems.push(`${what} is missing`);
        else if (contentOf(copy) !== contentOf(original))
          problems.push(`${what} holds ${contentOf(copy)}, expected ${contentOf(original)}`);
      }
  return [...problems, ...surplusImports(wanted, world)];
}

function surplusImports(wanted: ReadonlyMap<string, KubeObject>, world: World): string[] {
  const plurals: readonly ReferencedPlural[] = ['secrets', 'configmaps'];
  if (world.areImportsContested || (world.isRecordLost && !world.settings.hasReferences)) return [];
  const held = JSON.stringify(heldCopies(world));
  return plurals.flatMap((plural) =>
    [...world.host.list(plural), ...world.virtual.list(plural)].flatMap((object) => {
      if (!world.isOurs(object) || wanted.has(object.metadata.uid ?? '')) return [];
      const { name, namespace = '' } = object.metadata;
      // Also a name that only begins with it, such as the translated one, and the one that was written before the import.
      const names = [name, referencePlaceOf({ name, namespace }, world.settings).name];
      if (names.some((one) => held.includes(one))) return [];
      if (object.metadata.namespace === MAPPED_NAMESPACE && !world.settings.isMapped) return [];
      return [`${plural} ${objectKey(object)} is an import that nothing references`];
    }),
  );
}

/** Copies of pairs that opted out or that fail, and those that cannot be distinguished from foreign objects: they may name any object. */
function heldCopies(world: World): readonly KubeObject[] {
  return SYNCED_PLURALS.flatMap((plural) =>
    world.virtual.list(plural).flatMap((virtual) => {
      const copy = hostCopyOf(plural, virtual, world);
      if (copy === undefined) return [];
      const isPairHeld = isOptedOut(virtual) || isOptedOut(copy) || isFailed(virtual, world);
      return isPairHeld || !isRecognisable(plural, copy, world) ? [copy] : [];
    }),
  );
}

/** It is synced, and the copy at its place is its own. */
function holdsCopy(plural: SyncedPlural, virtual: KubeObject, world: World): boolean {
  const copy = hostCopyOf(plural, virtual, world);
  if (copy === undefined || !world.isOurs(copy) || !isRecognisable(plural, copy, world)) return false;
  const { annotations = {} } = copy.metadata;
  const isItsCopy = annotations['vcluster.loft.sh/object-uid'] === virtual.metadata.uid;
  return isItsCopy && (wantsCopy(plural, virtual, world) || isOptedOut(virtual) || isOptedOut(copy));
}

function hostCopyOf(plural: SyncedPlural, virtual: KubeObject, world: World): KubeObject | undefined {
  return world.host.get(plural, hostKeyOfObject(virtual, world.settings));
}

function contentOf(object: KubeObject): string {
  return JSON.stringify([object['data'] ?? {}, object['type'] ?? null, object['immutable'] ?? false]);
}
