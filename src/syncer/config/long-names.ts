/**
 * `endpointSyncer.references.naming: long` beside a vCluster that syncs the kind of an import. The import has the name and the marks of vCluster's own
 * copy, so vCluster takes it for one (0.37, `IsManaged`): it deletes one that no Pod needs, and if a Pod does, it deletes the object of the virtual
 * cluster as soon as this program removes the import. Short names are none of vCluster's.
 */

import type { JsonObject } from '../../base/json.ts';
import { errorAtValue, Fields, type Finding, pathOf, warningAtValue } from '../../config-file/finding.ts';
import { vclusterDefaults } from '../../shared-config/vcluster-values.ts';
import { KINDS } from '../kinds/keys-of-kinds.ts';
import { syncableKind } from '../kinds/synced-kinds.ts';
import { kindIdOf } from '../translate/last-synced.ts';
import { patchesIn } from './patch-rules.ts';
import { isEnabled, patchedKeys, syncsServices } from './sync-fields.ts';

const NAMING = 'endpointSyncer.references.naming';

/** `vcluster`: its own values; undefined: they are not known, nor whether there is a vCluster. */
export function longNameFindings(
  merged: JsonObject,
  vcluster: JsonObject | undefined,
  isStart: boolean,
): Finding[] {
  const [fields, defaults] = [new Fields(merged), new Fields(vclusterDefaults())];
  if (fields.text(NAMING) !== 'long') return [];
  const isOn = (of: Fields, key: string): boolean => {
    const name = `sync.toHost.${key}.enabled`;
    return of.isOn(name, defaults.isOn(name));
  };
  const theirs = vcluster && new Fields(vcluster);
  const shared = referencedKeys(fields).filter(
    (key) => isOn(fields, key) && (theirs === undefined ? !syncsServices(fields) : isOn(theirs, key)),
  );
  if (shared.length === 0) return [];
  const settings = shared.map((key) => `sync.toHost.${key}.enabled`).join(' and ');
  const why =
    `its copies (${settings}) have the same names as the imports then, so it deletes an import that no Pod needs, and, when one that a Pod needs ` +
    `is removed, the object of the virtual cluster: set it to short, or set ${settings} to false here, which leaves the copies to vCluster`;
  const add = isStart && theirs !== undefined ? errorAtValue : warningAtValue;
  const who = theirs === undefined ? 'if a vCluster syncs this virtual cluster, ' : 'beside vCluster, ';
  return [{ ...add(pathOf(NAMING), who + why), file: 'own' }];
}

/** The keys of `sync.toHost` of the kinds that patches may import objects of. */
function referencedKeys(fields: Fields): readonly string[] {
  const references = patchedKeys(fields)
    .filter((key) => isEnabled(fields, key))
    .flatMap((key) => patchesIn(fields.value(`sync.toHost.${key}.patches`)))
    .flatMap(({ reference }) => reference ?? []);
  const isOpen = references.some((one) => one.kindPath !== undefined || one.apiVersionPath !== undefined);
  const named = new Set(references.map(kindIdOf));
  return [...KINDS].flatMap(([key, id]) => {
    const isCopied = key === 'pods' || syncableKind(key) !== undefined;
    return (isOpen || named.has(id)) && !isCopied ? [key] : [];
  });
}
