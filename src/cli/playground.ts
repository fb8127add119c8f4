/** `playground`: a page on this machine where patches can be tried, without a cluster. */

import { InvalidArgumentError, Option, type Command } from 'commander';
import { startPage } from '../showcase/playground.ts';
import type { Config } from '../syncer/config/config.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { configFile } from './config/files.ts';
import { configWithoutFile, loadConfig } from './config/load.ts';
import { tell, type ExitWith } from './output/terminal.ts';
import { stopSignals } from './process-lifecycle.ts';

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

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, FIELDS);
  command
    .addOption(portOption())
    .action(({ port }: { port: number }) => exitWith(() => playground(command, port)));
}

const PORT_MAX = 65_535;

export function portOption(): Option {
  const option = new Option('--port <number>', 'port of the page on 127.0.0.1; 0 selects a free port');
  return option.default(0).argParser((text) => {
    const port = Number(text);
    if (/^\d+$/u.test(text) && port <= PORT_MAX) return port;
    throw new InvalidArgumentError(`It must be a number from 0 to ${PORT_MAX}.`);
  });
}

async function playground(command: Command, port: number): Promise<number> {
  using stop = stopSignals();
  const config = await configOf(command);
  await using page = await startPage({ port, config: () => config });
  process.stdout.write(`${page.url}\n`);
  tell('press Ctrl-C to stop');
  await stop.requested;
  return 0;
}

/** The given configuration, else the names that the examples use. */
async function configOf(command: Command): Promise<Config> {
  const input = loaderInput(command);
  return configFile(input) === undefined
    ? configWithoutFile(input, DEFAULT_FLAGS)
    : (await loadConfig(input)).config;
}
