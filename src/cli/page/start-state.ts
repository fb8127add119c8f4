/** What the page is given when it is opened: names, examples, and what completion needs of the JSON Schema. */

import type { JsonObject, JsonValue } from '../../base/json.ts';
import { configJsonSchema } from '../../config/schema/json-schema.ts';
import type { Config, PatchConfig } from '../../config/types.ts';
import { printObject } from '../objects/one-object.ts';
import { PAGE_EXAMPLES } from './examples.ts';

/** The user's own patches, where there are some, stand before the examples. `sample`: the objects of the demo, as YAML. */
export function startState(config: Config, sample?: string): JsonValue {
  const schema = JSON.parse(configJsonSchema()) as JsonObject; // what it prints
  const [first] = PAGE_EXAMPLES;
  const { patches } = config.sync.endpoints;
  const own =
    patches.length === 0 || first === undefined
      ? []
      : [{ ...first, ...ownPatches(patches), ...(sample === undefined ? {} : { virtual: sample }) }];
  const names = { name: config.name, hostNamespace: config.host.namespace };
  const definitions = schema['definitions'] ?? {};
  return { ...names, isDemo: sample !== undefined, examples: [...own, ...PAGE_EXAMPLES], definitions };
}

function ownPatches(patches: readonly PatchConfig[]): { title: string; patches: string } {
  const plain = { patches: patches as unknown as JsonValue }; // as the file has them
  return { title: 'Your configuration', patches: printObject(plain, 'yaml') };
}
