/** `store`: backup, check and compaction of the management store. */

import { plainText } from '../base/excerpt.ts';
import { existsSync } from 'node:fs';
import { Argument, type Command } from 'commander';
import { loadApiConfig } from './config/load-api.ts';
import type { ManagementConfig } from '../access-keys/config.ts';
import { TerminalError } from '../base/errors.ts';
import { HostCluster, verifySharedStore } from '../access-keys/open-store.ts';
import { silentLogger } from '../base/logger.ts';
import { backupDatabase, compactDatabase, verifyDatabase } from '../apiserver/storage/sqlite/maintenance.ts';
import { databaseFile, rejectForeignLog } from '../apiserver/storage/sqlite/database-file.ts';
import type { StoreVerdict } from '../apiserver/storage/store.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { reportProblems, type ExitWith, usageError, showProgress } from './output/terminal.ts';
import { programParts } from './installation.ts';

/** Where the Secrets of the kubernetes driver are. */
const HOST_FIELDS = ['host.kubeconfig', 'host.context', 'host.namespace'];

type Action = 'backup' | 'verify' | 'compact';

export function define(command: Command, exitWith: ExitWith): void {
  command
    .addArgument(
      new Argument('<action>', 'what to do').choices(['backup', 'verify', 'compact'] satisfies Action[]),
    )
    .argument('[file]', 'backup: the file to write; verify: the database or backup to check')
    .option('--output <file>', 'backup: the file to write');
  addConfigOptions(command, ['dataDir', 'store.driver', ...HOST_FIELDS]);
  command.addHelpText(
    'after',
    '\nbackup copies the database, also while the API runs; verify checks the database or a backup, or with the\n' +
      'kubernetes driver the Secrets; compact deletes history and frees disk space, while the API is stopped.',
  );
  command.action((action: Action, file: string | undefined, { output }: { output?: string }) =>
    exitWith(() => run(command, action, { file, output })),
  );
}

interface Files {
  readonly file: string | undefined;
  readonly output: string | undefined;
}

async function run(command: Command, action: Action, files: Files): Promise<number> {
  const misuse = misuseOf(action, files);
  if (misuse !== undefined) return usageError(misuse);
  // A file that is named needs no configuration.
  if (action === 'verify' && files.file !== undefined) return verify(files.file);
  const { management: config, warnings } = await loadApiConfig(loaderInput(command));
  reportProblems(warnings);
  const { driver } = config.store;
  if (driver === 'kubernetes' && action === 'verify') return verifyShared(config);
  if (driver !== 'sqlite')
    return usageError(`managementApi.store.driver is ${driver}: ${OTHER_DRIVERS[driver]}`);
  const database = databaseFile(config.dataDir);
  const advice = 'set managementApi.dataDir to the folder of the API, or start the API once';
  if (!existsSync(database)) throw new TerminalError(`${database} does not exist: ${advice}`);
  switch (action) {
    case 'backup':
      return backup(database, files.output ?? files.file ?? '');
    case 'verify':
      return verify(database);
    case 'compact':
      return compact(database);
  }
}

const OTHER_DRIVERS = {
  memory: 'nothing is kept, there is nothing to do',
  kubernetes: 'objects are Secrets in the host cluster, back them up with the cluster',
} as const;

function misuseOf(action: Action, { file, output }: Files): string | undefined {
  switch (action) {
    case 'backup':
      if (file === undefined && output === undefined)
        return 'backup needs the file to write: store backup FILE';
      if (file !== undefined && output !== undefined) return 'backup writes one file: give FILE or --output';
      return undefined;
    case 'verify':
      return output === undefined ? undefined : 'verify writes no file: leave out --output';
    case 'compact':
      return file === undefined && output === undefined
        ? undefined
        : 'compact works on the database of the configuration: leave out the file';
  }
}

function backup(database: string, target: string): number {
  rejectForeignLog(database);
  using progress = showProgress(`copying ${database}`);
  progress.announce();
  const { objects, revision, bytes } = backupDatabase(database, target);
  progress[Symbol.dispose]();
  process.stdout.write(`${target}: ${objects} objects, revision ${revision}, ${bytes} bytes\n`);
  return 0;
}

function verify(file: string): number {
  rejectForeignLog(file);
  return report(verifyDatabase(file));
}

async function verifyShared(config: ManagementConfig): Promise<number> {
  const { signal } = new AbortController();
  const options = { ...programParts(), config, logger: silentLogger, signal };
  await using host = new HostCluster(options);
  return report(await verifySharedStore(options, host));
}

function report({ problems, objects, revision }: StoreVerdict): number {
  if (problems.length === 0) process.stdout.write(`ok: ${objects} objects, revision ${revision}\n`);
  else process.stdout.write(problems.map((problem) => `${plainText(problem)}\n`).join(''));
  return problems.length === 0 ? 0 : 1;
}

function compact(database: string): number {
  const { rows, revision, bytesBefore, bytesAfter } = compactDatabase(database);
  process.stdout.write(
    `${database}: forgot ${rows} old rows, history begins at revision ${revision}, ${bytesBefore} → ${bytesAfter} bytes\n`,
  );
  return 0;
}
