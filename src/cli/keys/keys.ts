/** `keys`: every command about access keys and the tokens that they issue. */

import { type Command, Option } from 'commander';
import { StatusError } from '../../kube/status-error.ts';
import { ApiClient, type ApiConnection } from './api-client.ts';
import { addConfigOptions, API_FIELDS } from '../configuration/config-options.ts';
import { guarded } from '../output/guarded.ts';
import { bootstrap, type BootstrapOptions } from './keys-bootstrap.ts';
import { addConnectionOptions, connectionFor, serverOption } from './keys-connection.ts';
import { addCreateOptions, createKey, namesOneOwner, type CreateOptions } from './keys-create.ts';
import { getKey } from './keys-get.ts';
import { listKeys, type ListOptions } from './keys-list.ts';
import { KEY_FORMATS, type KeyFormat } from './keys-output.ts';
import { revokeKeys, type RevokeOptions } from './keys-revoke.ts';
import { rotateKey, type RotateOptions } from './keys-rotate.ts';
import { addTokenOptions, type TokenOptions } from './keys-token-options.ts';
import { printToken } from './keys-token.ts';
import { secondsIn } from './seconds-option.ts';

type Exit = (code: number) => void;

export function define(command: Command, exit: Exit): void {
  defineBootstrap(command.command('bootstrap'), exit);
  defineCreate(command.command('create'), exit);
  defineGet(command.command('get'), exit);
  defineList(command.command('list').alias('ls'), exit);
  defineRotate(command.command('rotate'), exit);
  defineRevoke(command.command('revoke'), exit);
  defineToken(command.command('token'), exit);
}

function defineBootstrap(command: Command, exit: Exit): void {
  command
    .description(
      "create the first administrator's key and print it, once; on the machine of the API, running or not",
    )
    .addOption(serverOption('address of the running API, if it is not that of the configuration'))
    .option('--rotate', 'revoke the first key and print another')
    .addOption(outputOption());
  addConfigOptions(command, API_FIELDS);
  command.action(async (options: BootstrapOptions) => exit(await advised(() => bootstrap(command, options))));
}

function defineCreate(command: Command, exit: Exit): void {
  command.description('create a key and print it, once').addOption(outputOption());
  addCreateOptions(command);
  addConnectionOptions(command);
  command.action(async (options: CreateOptions & { readonly output: KeyFormat }) => {
    if (!namesOneOwner(options)) {
      const message = 'error: say whose key it is with exactly one of --user, --team and --subject';
      command.error(message, { exitCode: 2 });
    }
    exit(await withClient(command, (client, connection) => createKey(client, connection, options)));
  });
}

function defineGet(command: Command, exit: Exit): void {
  command
    .description('show one key; its secret is never shown again')
    .argument('<name>', 'name of the key')
    .addOption(formatOption());
  addConnectionOptions(command);
  command.action(async (name: string, { output }: { readonly output: string }) =>
    exit(await withClient(command, (client) => getKey(client, name, output))),
  );
}

function defineList(command: Command, exit: Exit): void {
  command
    .description('show the keys that the caller may see')
    .addOption(formatOption())
    .option('-l, --selector <selector>', 'only keys whose labels match, as in kubectl')
    .option(
      '--field-selector <selector>',
      'only keys whose fields match: metadata.name, spec.user, spec.team',
    )
    .addOption(
      new Option('--expiring <duration>', 'only keys that expire within this time, such as 7d').argParser(
        secondsIn,
      ),
    )
    .option(
      '--sort-by <field>',
      'name, subject, created, expires, last-activity, or a field such as .spec.ttl',
    );
  addConnectionOptions(command);
  command.action(async (options: ListOptions) =>
    exit(await withClient(command, (client) => listKeys(client, options))),
  );
}

function defineRotate(command: Command, exit: Exit): void {
  command
    .description('give a key a new secret and print it, once')
    .argument('<name>', 'name of the key')
    .addOption(
      new Option('--overlap <duration>', 'how long the old secret keeps working, at most 7d, such as 1h')
        .argParser(secondsIn)
        .default(0, '0: it ends immediately, with the tokens issued so far'),
    )
    .addOption(outputOption());
  addConnectionOptions(command);
  command.action(async (name: string, options: RotateOptions) =>
    exit(await withClient(command, (client, connection) => rotateKey(client, connection, name, options))),
  );
}

function defineRevoke(command: Command, exit: Exit): void {
  command
    .description('delete keys; requests that use them fail immediately')
    .argument('<names...>', 'names of keys')
    .option('--disable', 'keep the key, but refuse requests that use it')
    .option('--enable', 'accept a disabled key again');
  addConnectionOptions(command);
  command.action(async (names: string[], options: RevokeOptions) =>
    exit(await withClient(command, (client) => revokeKeys(client, names, options))),
  );
}

function defineToken(command: Command, exit: Exit): void {
  command.description('issue a token for a connected cluster, or a kubeconfig that renews it');
  addTokenOptions(command);
  addConnectionOptions(command);
  command.action(async (options: TokenOptions) =>
    exit(await advised(async () => printToken(await connectionFor(command), options))),
  );
}

function withClient(
  command: Command,
  work: (client: ApiClient, connection: ApiConnection) => Promise<number>,
): Promise<number> {
  return advised(async () => {
    const connection = await connectionFor(command);
    await using client = new ApiClient(connection, warn);
    return await work(client, connection);
  });
}

function formatOption(): Option {
  return new Option('-o, --output <format>', 'output format')
    .choices(['table', 'wide', 'name', 'json', 'yaml'])
    .default('table');
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'the key alone, a kubeconfig with it, or the object')
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
