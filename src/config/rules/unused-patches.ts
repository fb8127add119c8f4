/** Warnings about patches that are not applied. */

import { isJsonObject, ownValue } from '../../base/json.ts';
import { type Finding, warningAtKey } from '../finding.ts';
import type { Fields } from '../schema/fields.ts';

/** Kinds whose patches this program applies, and whether they are synced by default. */
const PATCHED = new Map([
  ['endpoints', true],
  ['endpointSlices', false],
]);

/** `own`: the configuration file alone, because in vCluster's file such patches are vCluster's. */
export function unusedPatches(own: Fields): Finding[] {
  return ['toHost', 'fromHost'].flatMap((direction) =>
    Object.entries(own.object(`sync.${direction}`)).flatMap(([kind, section]) => {
      const patches = isJsonObject(section) ? ownValue(section, 'patches') : undefined;
      if (!Array.isArray(patches) || patches.length === 0) return [];
      const message = whyUnused(own, direction, kind);
      return message === undefined ? [] : [warningAtKey(['sync', direction, kind, 'patches'], message)];
    }),
  );
}

function whyUnused(own: Fields, direction: string, kind: string): string | undefined {
  const isSynced = direction === 'toHost' ? PATCHED.get(kind) : undefined;
  if (isSynced === undefined) {
    const kinds = [...PATCHED.keys()].map((name) => `sync.toHost.${name}`).join(' and ');
    return `this program applies the patches of ${kinds} only; move these to vCluster's own values`;
  }
  const switchPath = `sync.${direction}.${kind}.enabled`;
  return own.isOn(switchPath, isSynced)
    ? undefined
    : `these patches are not applied: ${switchPath} is not true`;
}
