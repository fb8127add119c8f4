/** `playground`: a page on this machine where patches can be tried, without a cluster. */

import type { Command } from 'commander';
import { configFile, configWithoutFile, loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/config.ts';
import { addConfigOptions, loaderInput } from '../config-options.ts';
import type { ExitWith } from '../output/terminal.ts';
import { parsePagePort, startPageServer, type PageServer, type PageServerOptions } from './page-server.ts';
import { PlaygroundSession } from './playground-session.ts';
import { startState } from './examples.ts';
import { keepAlive, stopSignals } from '../process-lifecycle.ts';

const FIELDS = [
  'name',
  'host.namespace',
  'patches.missingPaths',
  'patches.onError',
  'references.naming',
  'sandbox.expressionTimeout',
  'sandbox.memory',
];
/** The names that the examples use. */
const DEFAULT_FLAGS = { name: 'my-vcluster', 'host.namespace': 'team-a' };

interface PlaygroundFlags {
  readonly port: string;
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, FIELDS);
  command
    .option('--port <number>', 'port of the page on 127.0.0.1; 0 selects a free port', '0')
    .action((flags: PlaygroundFlags) => exitWith(() => playground(command, flags)));
}

async function playground(command: Command, flags: PlaygroundFlags): Promise<number> {
  const port = parsePagePort(flags.port);
  if (port === undefined) return 2;
  const stop = stopSignals();
  using _alive = keepAlive();
  const config = await configOf(command);
  await using page = await startPage({ port, config });
  process.stdout.write(`${page.url}\n`);
  process.stderr.write('press Ctrl-C to stop\n');
  await stop.requested;
  return 0;
}

interface PageOptions extends Partial<Pick<PageServerOptions, 'calls' | 'feeds'>> {
  readonly port: number;
  /** For patches without a configuration around them. */
  readonly config: Config;
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
          return startState(config, sample);
        },
        ...calls,
      },
      feeds,
    }),
  );
  const parts = undo.move();
  return { url, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** The given configuration, else the names that the examples use. */
async function configOf(command: Command): Promise<Config> {
  const input = loaderInput(command);
  return configFile(input) === undefined
    ? configWithoutFile(input, DEFAULT_FLAGS)
    : (await loadConfig(input)).config;
}
