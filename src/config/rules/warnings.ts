/** Warnings: valid settings that are most likely mistakes. */

import type { JsonObject } from '../../base/json.ts';
import { Fields, isMultiNamespace, pathOf } from '../schema/fields.ts';
import { type Finding, warningAtKey, warningAtValue } from '../finding.ts';
import { knownKeys } from '../schema/schema-check.ts';
import { placeholderWarnings } from './placeholders.ts';
import { nearestWord } from '../schema/suggest.ts';
import { unusedPatches } from './unused-patches.ts';

/**
 * `own` is the configuration file alone, `merged` with vCluster's values below it, both without empty keys; `defaults` is vCluster's whole
 * file.
 */
export function configWarnings(
  { merged, own }: { readonly merged: JsonObject; readonly own: JsonObject },
  defaults: JsonObject,
  fileExists: (path: string) => boolean = () => true,
): Finding[] {
  const fields = new Fields(merged);
  return [
    ...riskyChoices(fields),
    ...missingFiles(fields, fileExists),
    ...misspeltSections(new Fields(own), defaults),
    ...unusedPatches(new Fields(own)),
    ...placeholderWarnings(new Fields(own)),
  ];
}

function missingFiles(fields: Fields, fileExists: (path: string) => boolean): Finding[] {
  return ['endpointSyncer.virtual.kubeconfig', 'endpointSyncer.host.kubeconfig']
    .filter((name) => fields.text(name) !== '' && !fileExists(fields.text(name)))
    .map((name) => warningAtValue(pathOf(name), `there is no file ${fields.text(name)}`));
}

/** Objects that vCluster (by its values) and this program would both write. `vcluster` has no empty keys. */
export function vclusterWarnings(merged: JsonObject, vcluster: JsonObject): Finding[] {
  const [fields, theirs] = [new Fields(merged), new Fields(vcluster)];
  if (!fields.isOn('sync.toHost.endpoints.enabled', true)) return [];
  const findings: Finding[] = [];
  const warn = (name: string, message: string): void => {
    findings.push({ ...warningAtValue(pathOf(name), message), isAboutVcluster: true });
  };
  // Both kinds are on by default in vCluster.
  const endpoints = 'sync.toHost.endpoints.enabled';
  if (theirs.isOn(endpoints, true)) {
    warn(endpoints, "vCluster syncs Endpoints too: set it to false in vCluster's values");
  }
  const slices = 'sync.toHost.endpointSlices.enabled';
  const patches = fields.value('sync.toHost.endpoints.patches');
  if (theirs.isOn(slices, true) && Array.isArray(patches) && patches.length > 0) {
    const why =
      'vCluster copies EndpointSlices without the patches, and the mirroring controller of the host updates the same objects';
    warn(slices, `${why}: set it to false in vCluster's values`);
  }
  return findings;
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
  if (fields.text('endpointSyncer.onHostDelete') === 'deleteVirtual') {
    findings.push(
      warningAtValue(
        pathOf('endpointSyncer.onHostDelete'),
        'controllers of the host cluster, and other replicas without leaderElection, delete Endpoints too: those are then deleted in the virtual cluster',
      ),
    );
  }
  if (fields.isOn('endpointSyncer.createNamespaces') && !isMultiNamespace(fields)) {
    findings.push(
      warningAtValue(
        pathOf('endpointSyncer.createNamespaces'),
        'has no effect: this virtual cluster has one host namespace',
      ),
    );
  }
  return findings;
}

/** Unknown keys outside our own sections belong to vCluster, but one that resembles a key of this program is most likely a typo. */
function misspeltSections(fields: Fields, defaults: JsonObject): Finding[] {
  const theirs = new Fields(defaults);
  return ['', 'sync', 'sync.toHost'].flatMap((section) => {
    const path = section === '' ? [] : pathOf(section);
    const known = knownKeys(path);
    return keysOf(fields, section)
      .filter((key) => !known.includes(key) && !keysOf(theirs, section).includes(key))
      .flatMap((key) => {
        const hint = misplaced(section, key) ?? misspelt(key, known);
        return hint === undefined ? [] : [warningAtKey([...path, key], `this key is not read: ${hint}`)];
      });
  });
}

function keysOf(fields: Fields, section: string): string[] {
  return Object.keys(section === '' ? fields.root() : fields.object(section));
}

function misspelt(key: string, known: readonly string[]): string | undefined {
  const near = nearestWord(key, known);
  return near === undefined ? undefined : `did you mean "${near}"?`;
}

/** A known key one or two levels too high. */
function misplaced(section: string, key: string): string | undefined {
  if (section === '' && key === 'toHost') return 'it belongs below sync';
  const isMisplaced = section !== 'sync.toHost' && ['endpoints', 'endpointSlices'].includes(key);
  return isMisplaced ? 'it belongs below sync.toHost' : undefined;
}
