/** The page where patches can be tried: what it shows first, and its runs. */

import type { Config } from '../syncer/config/config.ts';
import { startPageServer, type PageServer, type PageServerOptions } from './page-server.ts';
import { PlaygroundSession } from './playground-session.ts';
import { readFileSync } from 'node:fs';
import { parseYaml } from '../base/yaml/document.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { configJsonSchema } from '../cli/config/schema.ts';
import { apiVersionOf } from '../kube/object.ts';
import { isSharedKey, SYNCABLE_KINDS } from '../syncer/kinds/synced-kinds.ts';
import { printObject } from '../cli/output/objects.ts';

interface PageOptions extends Partial<Pick<PageServerOptions, 'calls' | 'feeds'>> {
  readonly port: number;
  /** The demo's follows its file. */
  readonly config: () => Config;
  /** Of the demo: objects that its patches match, as YAML. */
  readonly sample?: string;
}

/** Serves the page with its playground, and what else `calls` and `feeds` add. Rejects with a `TerminalError` when the port is not available. */
export async function startPage({
  port,
  config,
  sample,
  calls,
  feeds = {},
}: PageOptions): Promise<PageServer> {
  await using undo = new AsyncDisposableStack();
  const session = undo.use(new PlaygroundSession(config));
  const { url } = undo.use(
    await startPageServer({
      port,
      calls: {
        '/api/run': (body) => session.run(body),
        '/api/start': async () => {
          void session.warmUp();
          return startState(config(), sample);
        },
        ...calls,
      },
      feeds,
    }),
  );
  const parts = undo.move();
  return { url, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

// What the page shows first: one example for each patch mode, for each recipe of docs/patches.md, and for EndpointSlices.

interface PageExample extends JsonObject {
  title: string;
  patches: string;
  virtual: string;
  host: string;
  isReverse: boolean;
}

interface ExamplesFile {
  readonly samples: Readonly<Record<string, string>>;
  readonly examples: readonly (Pick<PageExample, 'title' | 'patches'> & {
    readonly virtual?: readonly string[];
    readonly host?: string;
    readonly isReverse?: boolean;
  })[];
}

/** The samples, and the examples in which they are. */
export function pageExamples(): Pick<ExamplesFile, 'samples'> & {
  readonly examples: PageExample[];
} {
  const text = readFileSync(new URL('./assets/examples.yaml', import.meta.url), 'utf8');
  const { samples, examples } = parseYaml(text).json as unknown as ExamplesFile; // our own file
  return {
    samples,
    examples: examples.map(({ virtual = [samples['web'] ?? ''], host = '', isReverse = false, ...one }) => ({
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
  const patches = configuredPatches(config);
  if (patches !== undefined)
    examples.unshift({
      title: 'Your configuration',
      patches: printObject(patches, 'yaml'),
      virtual: sample ?? patchedSamples(config, samples),
      host: '',
      isReverse: false,
    });
  const names = { name: config.name, hostNamespace: config.host.namespace };
  const definitions = schema['definitions'] ?? {};
  return { ...names, isDemo: sample !== undefined, examples, definitions };
}

/** An object of each kind that the configuration patches, and those without which it is not copied. */
function patchedSamples({ sync }: Config, samples: ExamplesFile['samples']): string {
  const patched = SYNCABLE_KINDS.filter(({ key }) => sync[key].patches.length > 0);
  const names = new Set(patched.flatMap(({ examples = [] }) => examples));
  const others = patched.filter(({ examples }) => examples === undefined);
  return [
    ...Object.entries(samples).flatMap(([name, sample]) => (names.has(name) ? [sample] : [])),
    ...others.map(({ resource, sample }) => {
      const { kind } = resource;
      const metadata = { name: 'web', namespace: 'shop' };
      return printObject({ apiVersion: apiVersionOf(resource), kind, metadata, ...sample }, 'yaml');
    }),
  ].join('---\n');
}

/** A list of patches where only Endpoints have some, else the part of the configuration that the editor can hold; undefined: there are none. */
function configuredPatches({ sync, services }: Config): JsonObject | undefined {
  const { endpoints } = sync;
  const patched = SYNCABLE_KINDS.filter(({ key }) => sync[key].patches.length > 0);
  if (patched.every(({ key }) => key === 'endpoints'))
    return patched.length === 0 ? undefined : { patches: plain(endpoints).patches };
  const shown = SYNCABLE_KINDS.filter((kind) => isSharedKey(kind.key) || patched.includes(kind));
  return {
    sync: { toHost: Object.fromEntries(shown.map(({ key }) => [key, plain(sync[key])])) },
    endpointSyncer: { services: { mode: services.mode, allow: [...services.allow] } },
  };
}

function plain({ patches, ...settings }: Config['sync']['endpoints']) {
  return { ...settings, patches: patches as unknown as JsonValue }; // as the file has them
}
