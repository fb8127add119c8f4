/** Valid settings that are most likely mistakes, and conflicts with vCluster's own values. */

import { type JsonObject, isJsonObject, ownValue } from '../../base/json.ts';
import { missingFiles, placeholderWarnings } from '../../config-file/mistakes.ts';
import {
  errorAtValue,
  Fields,
  type Finding,
  pathOf,
  warningAtKey,
  warningAtValue,
} from '../../config-file/finding.ts';
import { knownKeys } from '../../config-file/schema-check.ts';
import { keyMatcher } from '../../kube/names.ts';
import { misspeltKeys, misspeltSections } from '../../shared-config/shared.ts';
import { vclusterDefaults } from '../../shared-config/vcluster-values.ts';
import { isSharedKey, kindsAt, SHARED_KEYS, syncableKind, SYNCED_KEYS } from '../kinds/synced-kinds.ts';
import { syncSections } from './schema.ts';
import { EXCLUDED_ANNOTATIONS } from './schema-syncer.ts';
import { isEnabled, patchedKeys, syncsServices } from './sync-fields.ts';

/** `own` is the configuration file alone, `merged` with vCluster's values below it, both without empty keys. */
export function configWarnings(
  { merged, own }: { readonly merged: JsonObject; readonly own: JsonObject },
  fileExists: (path: string) => boolean = () => true,
): Finding[] {
  const fields = new Fields(merged);
  return [
    ...riskyChoices(fields),
    ...missingFiles(fields, FILES, fileExists),
    ...misspelt(new Fields(own), new Fields(vclusterDefaults())),
    ...unusedPatches(new Fields(own)),
    ...droppedExclusions(new Fields(own)),
    ...constantExistence(new Fields(own)),
    ...placeholderWarnings(new Fields(own), 'endpointSyncer'),
  ];
}

const FILES = ['endpointSyncer.virtual.kubeconfig', 'endpointSyncer.host.kubeconfig'];

/** The keys of the kinds that vCluster syncs by its values, which have no empty keys, of those that this program can sync. */
export function syncedByVcluster(vcluster: JsonObject): readonly string[] {
  const [theirs, defaults] = [new Fields(vcluster), new Fields(vclusterDefaults())];
  const isOn = (name: string): boolean => theirs.isOn(name, defaults.isOn(name));
  return SYNCED_KEYS.filter((key) => isOn(`sync.toHost.${key}.enabled`));
}

/**
 * Objects that vCluster (by its values) and this program would both write. At a start, these are errors, unless
 * `endpointSyncer.besideVcluster` is `force`. `vcluster` has no empty keys.
 */
export function vclusterFindings(merged: JsonObject, vcluster: JsonObject, isStart: boolean): Finding[] {
  const [fields, theirs] = [new Fields(merged), new Fields(vcluster)];
  const isError = isStart && fields.text('endpointSyncer.besideVcluster') !== 'force';
  const findings: Finding[] = [];
  const shared = syncedByVcluster(vcluster);
  for (const key of SHARED_KEYS) {
    const kind = kindsAt(key);
    const name = `sync.toHost.${key}.enabled`;
    if (!shared.includes(key) || !isEnabled(fields, key)) continue;
    const add = isError ? errorAtValue : warningAtValue;
    const here = `this program syncs ${kind}, and so does vCluster: disable one of the two, or set endpointSyncer.besideVcluster to force`;
    if (isError) findings.push({ ...add(pathOf(name), here), file: 'own' });
    const there = `vCluster syncs ${kind} too: set it to false in vCluster's values`;
    findings.push({ ...add(pathOf(name), there), file: 'base' });
  }
  findings.push(...services(fields, shared));
  return [...findings, ...syncedByNone(fields, shared), ...mirroredSlices(fields, theirs)];
}

/** No error: a fleet may copy the Services of members whose values have the default. */
function services(fields: Fields, byVcluster: readonly string[]): Finding[] {
  const isSyncedHere = syncsServices(fields) && isEnabled(fields, 'services');
  if (!isSyncedHere || !byVcluster.includes('services')) return [];
  const message =
    'this program syncs Services, and so does vCluster: set it to vcluster, ' +
    "or disable sync.toHost.services in vCluster's values and enable it here";
  return [{ ...warningAtValue(pathOf('endpointSyncer.services'), message), file: 'own' }];
}

/** Warns only of kinds that are enabled by default; every other kind is disabled unless the user enables it. */
function syncedByNone(fields: Fields, shared: readonly string[]): Finding[] {
  const byDefault = SHARED_KEYS.filter((key) => syncableKind(key)?.isEnabledByDefault);
  return byDefault.flatMap((key) => {
    const name = `sync.toHost.${key}.enabled`;
    if (shared.includes(key) || isEnabled(fields, key)) return [];
    const message = `neither this program nor vCluster syncs ${kindsAt(key)}, so existing copies on the host are no longer updated: set it to true here or in vCluster's values`;
    return [{ ...warningAtValue(pathOf(name), message), file: 'own' as const }];
  });
}

/** For a configuration without vCluster's values: the file asks for Services, and does not say who syncs them. */
export function unsyncedServices(own: JsonObject): Finding[] {
  const name = 'sync.toHost.services.enabled';
  const fields = new Fields(own);
  if (!fields.isOn(name) || fields.value('endpointSyncer.services') !== undefined) return [];
  const message =
    'this has no effect: endpointSyncer.services is vcluster by default, so this program copies no Services; ' +
    'set it to sync if no vCluster syncs them, else to vcluster';
  return [warningAtValue(pathOf(name), message)];
}

/** vCluster calls the Secret `vc-NAME`, and its copies on the host end in its name. With another name, this program makes a second set of them. */
function nameOfAnother(fields: Fields): Finding[] {
  const [name, secret] = [fields.text('endpointSyncer.name'), fields.text('endpointSyncer.virtual.secret')];
  const [, vcluster] = /^vc-(.+)$/u.exec(secret) ?? [];
  if (name === '' || vcluster === undefined || vcluster === name) return [];
  const message =
    `the Secret ${secret} is that of the vCluster "${vcluster}", and the name here is "${name}": ` +
    `the copies of that vCluster are not found under it, and are made a second time; set it to ${vcluster}, or correct endpointSyncer.virtual.secret`;
  return [warningAtValue(pathOf('endpointSyncer.name'), message)];
}

function mirroredSlices(fields: Fields, theirs: Fields): Finding[] {
  const slices = 'sync.toHost.endpointSlices.enabled';
  const patches = fields.value('sync.toHost.endpoints.patches');
  const isPatched = Array.isArray(patches) && patches.length > 0;
  if (!isPatched || !fields.isOn('sync.toHost.endpoints.enabled', true)) return [];
  if (fields.isOn(slices, true) || !theirs.isOn(slices, true)) return [];
  const message =
    'vCluster copies EndpointSlices without the patches, and the mirroring controller of the host updates the same objects: ' +
    "set it to false in vCluster's values";
  return [{ ...warningAtValue(pathOf(slices), message), file: 'base' }];
}

function riskyChoices(fields: Fields): Finding[] {
  const findings: Finding[] = [];
  if (
    !fields.isOn('sync.toHost.endpoints.enabled', true) &&
    fields.isOn('sync.toHost.services.enabled', true)
  ) {
    findings.push(
      warningAtValue(
        pathOf('sync.toHost.endpoints.enabled'),
        'sync.toHost.services.enabled is true, but Services without a selector have no addresses on the host without their Endpoints',
      ),
    );
  }
  findings.push(...nameOfAnother(fields));
  if (fields.text('endpointSyncer.onHostDelete') === 'deleteVirtual') {
    findings.push(
      warningAtValue(
        pathOf('endpointSyncer.onHostDelete'),
        'what else deletes copies, such as a garbage collector of the host or another replica without leaderElection, then deletes the objects of the virtual cluster, too',
      ),
    );
  }
  const allowed = fields.value('endpointSyncer.services.allow');
  if (Array.isArray(allowed) && allowed.includes('externalIPs')) {
    const message =
      'externalIPs of Services are deprecated since Kubernetes 1.36, and a host may not implement them any more: use type LoadBalancer';
    const path = [...pathOf('endpointSyncer.services.allow'), allowed.indexOf('externalIPs')];
    findings.push(warningAtValue(path, message));
  }
  return findings;
}

function misspelt(own: Fields, theirs: Fields): Finding[] {
  const hintOf = (section: string) => (key: string) => misplaced(section, key);
  return [
    ...misspeltSections(own, theirs.keys(''), hintOf('')),
    ...['sync', 'sync.toHost'].flatMap((section) =>
      misspeltKeys(section, {
        keys: own.keys(section),
        known: knownKeys(pathOf(section), syncSections),
        theirs: theirs.keys(section),
        hintOf: hintOf(section),
      }),
    ),
  ];
}

/** A known key above its section. */
function misplaced(section: string, key: string): string | undefined {
  if (section === '' && key === 'toHost') return 'it belongs below sync';
  if (section === '' && knownKeys(['endpointSyncer'], syncSections).includes(key))
    return 'it belongs below endpointSyncer';
  const isMisplaced = section !== 'sync.toHost' && isSharedKey(key);
  return isMisplaced ? 'it belongs below sync.toHost' : undefined;
}

/** `own`: the configuration file alone, because in vCluster's file such patches are vCluster's. */
function unusedPatches(own: Fields): Finding[] {
  return ['toHost', 'fromHost'].flatMap((direction) => {
    const above = ['sync', direction];
    return [
      ...patchedSections(own.object(above.join('.')), above),
      ...patchedSections(own.object([...above, CUSTOM].join('.')), [...above, CUSTOM]),
    ].flatMap((path) => {
      const [, , kind = ''] = path;
      const message = whyUnused(own, direction, kind);
      return message === undefined ? [] : [warningAtKey([...path, 'patches'], message)];
    });
  });
}

const CUSTOM = 'customResources';

function patchedSections(sections: JsonObject, above: readonly string[]): readonly (readonly string[])[] {
  return Object.entries(sections).flatMap(([kind, section]) => {
    const patches = isJsonObject(section) ? ownValue(section, 'patches') : undefined;
    return Array.isArray(patches) && patches.length > 0 ? [[...above, kind]] : [];
  });
}

/** A list of one's own, even an empty one, replaces the default one, which keeps copies of values out of annotations that a patch may mask. */
function droppedExclusions(own: Fields): Finding[] {
  return ['endpointSyncer', 'endpointSyncer.defaults'].flatMap((section) =>
    droppedFrom(own, `${section}.metadata.excludeAnnotations`),
  );
}

function droppedFrom(own: Fields, name: string): Finding[] {
  const list = own.value(name);
  if (!Array.isArray(list)) return [];
  const isListed = keyMatcher(list.filter((one) => typeof one === 'string'));
  const dropped = EXCLUDED_ANNOTATIONS.filter((key) => !isListed(key));
  if (dropped.length === 0) return [];
  const message = `this list replaces the default one, so these are copied: add ${dropped.join(', ')}, unless that is intended`;
  return [warningAtKey(pathOf(name), message)];
}

function constantExistence(own: Fields): Finding[] {
  if (own.text('endpointSyncer.patches.missingPaths') === 'create') return [];
  return patchedKeys(own).flatMap((key) => {
    const patches = own.value(`sync.toHost.${key}.patches`);
    return (Array.isArray(patches) ? patches : []).flatMap((patch, at) => {
      const expression = isJsonObject(patch) ? ownValue(patch, 'expression') : undefined;
      if (typeof expression !== 'string' || !/\bvalueExists\b/.test(expression)) return [];
      const message =
        'valueExists is always true, because a path that is not found is not patched; ' +
        'with endpointSyncer.patches.missingPaths: create, the expression also runs for a missing key';
      return [warningAtValue(['sync', 'toHost', key, 'patches', at, 'expression'], message)];
    });
  });
}

function whyUnused(own: Fields, direction: string, kind: string): string | undefined {
  const patched = direction === 'toHost' ? patchedKeys(own).find((key) => key === kind) : undefined;
  if (patched === undefined) {
    const kinds = patchedKeys(own).map((key) => `sync.toHost.${key}`);
    const named = [kinds.slice(0, -1).join(', '), ...kinds.slice(-1)]
      .filter((text) => text !== '')
      .join(' and ');
    return `this program applies the patches of ${named} only; move these to vCluster's own values`;
  }
  if (isEnabled(own, patched)) return undefined;
  return `these patches are not applied: sync.${direction}.${kind}.enabled is not true`;
}
