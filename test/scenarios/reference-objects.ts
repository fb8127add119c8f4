/** Builders for scenarios about references. */

import type { KubeObject } from '../../src/kube/object.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { hostNameShort } from '../../src/syncer/translate/names.ts';
import { endpoints } from './objects.ts';
import { pair, type World } from './world.ts';

/** The annotations that contain references. */
export const NOTES = {
  secret: 'example.com/secret',
  config: 'example.com/config',
  gadget: 'example.com/gadget',
} as const;

type Names = Partial<Record<keyof typeof NOTES, string>>;

const reference = (note: string, apiVersion: string, kind: string): JsonObject => ({
  path: `metadata.annotations["${note}"]`,
  reference: { apiVersion, kind },
});

/** `toHost`: laid over `sync.toHost`. `more`: further patches. Gadgets are named only where the world serves them. */
export function referencePatches(
  toHost: JsonObject = {},
  withGadgets = false,
  more: readonly JsonObject[] = [],
): JsonObject {
  const patches = [
    reference(NOTES.secret, 'v1', 'Secret'),
    reference(NOTES.config, 'v1', 'ConfigMap'),
    ...(withGadgets ? [reference(NOTES.gadget, 'example.com/v1', 'Gadget')] : []),
    ...more,
  ];
  const customResources = { 'gadgets.example.com': { enabled: true } };
  return { sync: { toHost: { endpoints: { enabled: true, patches }, customResources, ...toHost } } };
}

/** One patch is for Secrets; the data may name other kinds. */
export const KINDS_BY_DATA: JsonObject = {
  sync: {
    toHost: {
      endpoints: {
        enabled: true,
        patches: [
          {
            path: 'subsets[*].addresses[*].targetRef',
            reference: {
              apiVersion: 'v1',
              kind: 'Secret',
              namePath: 'name',
              namespacePath: 'namespace',
              kindPath: 'kind',
            },
          },
        ],
      },
    },
  },
};

/** An Endpoints object that references these. */
export function named(key: string, names: Names): KubeObject {
  const annotations: Record<string, string> = {};
  for (const [what, name] of Object.entries(names)) annotations[NOTES[what as keyof typeof NOTES]] = name;
  return endpoints(key, { annotations });
}

export function secret(
  key: string,
  content: JsonObject = {},
  labels: Record<string, string> = {},
): KubeObject {
  const [namespace, name] = pair(key);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name, ...(Object.keys(labels).length > 0 ? { labels } : {}) },
    type: 'Opaque',
    data: { k: 'dg==' },
    ...content,
  };
}

export function configMap(key: string, data: Record<string, string>): KubeObject {
  const [namespace, name] = pair(key);
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

/** Where the host copy of a referenced object is. */
export function short(world: World, key: string): [string, string] {
  const [namespace, name] = pair(key);
  return [world.hostNamespace, hostNameShort(name, namespace, world.vcluster)];
}

/** Waits until the import on the host is up to date, and returns it. */
export function importedTo(
  world: World,
  kind: 'Secret' | 'ConfigMap' | 'Gadget',
  key: string,
  holds: (copy: KubeObject) => boolean = () => true,
): Promise<KubeObject> {
  return world.host.when(kind, short(world, key), holds);
}
