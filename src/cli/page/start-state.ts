/** The data that the page requests when it opens: names, examples, and the definitions of the JSON Schema for completion. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import { configJsonSchema } from '../../config/schema/json-schema.ts';
import type { Config, PatchConfig } from '../../config/types.ts';
import { printObject } from '../objects/one-object.ts';
import { PAGE_EXAMPLES } from './examples.ts';

/** The patches of the configuration, if it has some, come before the examples. `sample`: the objects of the demo, as YAML. */
export function startState(config: Config, sample?: string): JsonValue {
  const schema = JSON.parse(configJsonSchema()) as JsonObject; // what it prints
  const [first] = PAGE_EXAMPLES;
  const patches = configuredPatches(config);
  const own =
    patches === undefined || first === undefined
      ? []
      : [
          {
            ...first,
            title: 'Your configuration',
            patches: printObject(patches, 'yaml'),
            ...(sample === undefined ? {} : { virtual: sample }),
          },
        ];
  const names = { name: config.name, hostNamespace: config.host.namespace };
  const definitions = schema['definitions'] ?? {};
  return { ...names, isDemo: sample !== undefined, examples: [...own, ...PAGE_EXAMPLES], definitions };
}

/** A list of patches where only Endpoints have some, else the part of the configuration that the editor can hold; undefined: there are none. */
function configuredPatches({ sync, services }: Config): JsonObject | undefined {
  const { endpoints, endpointSlices } = sync;
  if (endpointSlices.patches.length === 0)
    return endpoints.patches.length === 0 ? undefined : { patches: plain(endpoints.patches) };
  const toHost = {
    endpoints: { enabled: endpoints.enabled, patches: plain(endpoints.patches) },
    endpointSlices: { enabled: endpointSlices.enabled, patches: plain(endpointSlices.patches) },
  };
  return {
    sync: { toHost },
    endpointSyncer: { services: { mode: services.mode, allow: [...services.allow] } },
  };
}

function plain(patches: readonly PatchConfig[]): JsonValue {
  return patches as unknown as JsonValue; // as the file has them
}
