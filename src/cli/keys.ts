/** `keys`: the first key, and keys in everyday life. */

import { type Command, Option } from 'commander';
import { StatusError } from '../kube/status-error.ts';
import { ApiClient } from './api-client.ts';
import { addConfigOptions, API_FIELDS } from './config-options.ts';
import { guarded } from './guarded.ts';
import { bootstrap, type BootstrapOptions } from './keys-bootstrap.ts';
import { addConnectionOptions, connectionFor, serverOption } from './keys-connection.ts';
import { addCreateOptions, createKey, namesOneOwner, type CreateOptions } from './keys-create.ts';
import { listKeys, type ListOptions } from './keys-list.ts';
import { KEY_FORMATS, type KeyFormat } from './keys-output.ts';
import { revokeKeys, type RevokeOptions } from './keys-revoke.ts';

type Exit = (code: number) => void;

export function define(command: Command, exit: Exit): void {
  defineBootstrap(command.command('bootstrap'), exit);
  defineCreate(command.command('create'), exit);
  defineList(command.command('list').alias('ls'), exit);
  defineRevoke(command.command('revoke'), exit);
}

function defineBootstrap(command: Command, exit: Exit): void {
  command
    .description(
      "print the first administrator's key, once; on the machine of the API, whether it runs or not",
    )
    .addOption(serverOption('address of the running API, where the configuration does not tell'))
    .option('--rotate', 'revoke the first key and print another')
    .addOption(outputOption());
  addConfigOptions(command, API_FIELDS);
  command.action(async (options: BootstrapOptions) => exit(await advised(() => bootstrap(command, options))));
}

function defineCreate(command: Command, exit: Exit): void {
  command.description('make a key and print it; it is shown this once').addOption(outputOption());
  addCreateOptions(command);
  addConnectionOptions(command);
  command.action(async (options: CreateOptions & { readonly output: KeyFormat }) => {
    if (!namesOneOwner(options)) {
      const message = 'error: say whose key it is with exactly one of --user, --team and --subject';
      command.error(message, { exitCode: 2 });
    }
    exit(
      await advised(async () => {
        const connection = await connectionFor(command);
        await using client = new ApiClient(connection, warn);
        return await createKey(client, connection, options);
      }),
    );
  });
}

function defineList(command: Command, exit: Exit): void {
  command
    .description('show the keys that this key may see')
    .addOption(
      new Option('-o, --output <format>', 'table, wide, name, json or yaml')
        .choices(['table', 'wide', 'name', 'json', 'yaml'])
        .default('table'),
    )
    .option('-l, --selector <selector>', 'only those whose labels match, as kubectl takes it');
  addConnectionOptions(command);
  command.action(async (options: ListOptions) =>
    exit(
      await advised(async () => {
        await using client = new ApiClient(await connectionFor(command), warn);
        return await listKeys(client, options);
      }),
    ),
  );
}

function defineRevoke(command: Command, exit: Exit): void {
  command
    .description('delete keys: whoever uses one is refused from now on')
    .argument('<names...>', 'names of keys')
    .option('--disable', 'keep the key and refuse whoever uses it')
    .option('--enable', 'take a disabled key again');
  addConnectionOptions(command);
  command.action(async (names: string[], options: RevokeOptions) =>
    exit(
      await advised(async () => {
        await using client = new ApiClient(await connectionFor(command), warn);
        return await revokeKeys(client, names, options);
      }),
    ),
  );
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'key alone, a kubeconfig with it, or the object')
    .choices(KEY_FORMATS)
    .default('key');
}

function warn(text: string): void {
  process.stderr.write(`warning: ${text}\n`);
}

function advised(work: () => Promise<number>): Promise<number> {
  return guarded(work, adviceFor);
}

/** A key that is proven and refused is told so by the API itself. */
function adviceFor(error: Error): string {
  if (!(error instanceof StatusError) || error.message !== 'Unauthorized') return '';
  return ': this API does not know the access key (--token or ENDPOINT_SYNCER_TOKEN), or the dataDir of --config is not its own';
}
