/** What the page shows first: one example for each patch mode, for each recipe of docs/patches.md, and for EndpointSlices, and names and definitions for completion. */

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { configJsonSchema } from '../../config/schema/schema.ts';
import type { Config } from '../../config/config.ts';
import type { PatchConfig } from '../../config/types.ts';
import { printObject } from '../output/objects.ts';

interface PageExample extends JsonObject {
  title: string;
  patches: string;
  virtual: string;
  host: string;
  isReverse: boolean;
}

interface ExamplesFile {
  readonly samples: Readonly<Record<'web' | 'slice' | 'service', string>>;
  readonly examples: readonly (Pick<PageExample, 'title' | 'patches'> & {
    readonly virtual?: readonly string[];
    readonly host?: string;
    readonly isReverse?: boolean;
  })[];
}

/** The samples, and the examples in which they are. */
export function pageExamples(): Pick<ExamplesFile, 'samples'> & {
  readonly examples: readonly PageExample[];
} {
  const text = readFileSync(new URL('./assets/examples.yaml', import.meta.url), 'utf8');
  const { samples, examples } = parse(text) as ExamplesFile; // our own file
  return {
    samples,
    examples: examples.map(({ virtual = [samples.web], host = '', isReverse = false, ...one }) => ({
      ...one,
      virtual: virtual.join('---\n'),
      host,
      isReverse,
    })),
  };
}

// The data that the page requests when it opens: names, examples, and the definitions of the JSON Schema for completion.

/** The patches of the configuration, if it has some, come before the examples. `sample`: the objects of the demo, as YAML. */
export function startState(config: Config, sample?: string): JsonValue {
  const schema = JSON.parse(configJsonSchema()) as JsonObject; // what it prints
  const { samples, examples } = pageExamples();
  const [first] = examples;
  const patches = configuredPatches(config);
  const own =
    patches === undefined || first === undefined
      ? []
      : [
          {
            ...first,
            title: 'Your configuration',
            patches: printObject(patches, 'yaml'),
            virtual: sample ?? patchedSamples(config, samples),
          },
        ];
  const names = { name: config.name, hostNamespace: config.host.namespace };
  const definitions = schema['definitions'] ?? {};
  return { ...names, isDemo: sample !== undefined, examples: [...own, ...examples], definitions };
}

/** An object of each kind that the configuration patches, and the Endpoints without which a Service is not copied. */
function patchedSamples({ sync }: Config, { web, slice, service }: ExamplesFile['samples']): string {
  const { endpoints, endpointSlices, services } = sync;
  const patched = [
    { patches: [...endpoints.patches, ...services.patches], sample: web },
    { patches: endpointSlices.patches, sample: slice },
    { patches: services.patches, sample: service },
  ];
  return patched.flatMap(({ patches, sample }) => (patches.length === 0 ? [] : [sample])).join('---\n');
}

/** A list of patches where only Endpoints have some, else the part of the configuration that the editor can hold; undefined: there are none. */
function configuredPatches({ sync, services }: Config): JsonObject | undefined {
  const { endpoints, endpointSlices, services: servicesSync } = sync;
  if (endpointSlices.patches.length + servicesSync.patches.length === 0)
    return endpoints.patches.length === 0 ? undefined : { patches: plain(endpoints.patches) };
  const toHost = {
    endpoints: { enabled: endpoints.enabled, patches: plain(endpoints.patches) },
    endpointSlices: { enabled: endpointSlices.enabled, patches: plain(endpointSlices.patches) },
    ...(servicesSync.patches.length === 0
      ? {}
      : { services: { enabled: servicesSync.enabled, patches: plain(servicesSync.patches) } }),
  };
  return {
    sync: { toHost },
    endpointSyncer: { services: { mode: services.mode, allow: [...services.allow] } },
  };
}

function plain(patches: readonly PatchConfig[]): JsonValue {
  return patches as unknown as JsonValue; // as the file has them
}
