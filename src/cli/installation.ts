/** The commands about this installation, `version` and `schema`, and what its manifest says. */

import { formatOption } from './output/listing.ts';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { systemClock } from '../base/clock.ts';
import { InvariantError } from '../base/errors.ts';
import { configJsonSchema } from '../config/schema/schema.ts';
import { systemRandom } from '../base/random.ts';
import { tell, type ExitWith } from './output/terminal.ts';

export function defineVersion(command: Command): void {
  command.addOption(formatOption(['text', 'json'])).action((options: { output: string }) => {
    const version = packageVersion();
    const text =
      options.output === 'json'
        ? JSON.stringify({ version, node: process.version })
        : `endpoint-syncer ${version} (node ${process.version})`;
    process.stdout.write(`${text}\n`);
  });
}

export function defineSchema(command: Command, exitWith: ExitWith): void {
  command
    .option('-w, --write', 'write the schema to config/schema.json')
    .option('--check', 'exit 1 if config/schema.json is out of date')
    .option('--modeline', 'print the comment that makes an editor use the schema of this installation')
    .action((options: SchemaOptions) => exitWith(() => run(options)));
}

interface SchemaOptions {
  readonly write?: boolean;
  readonly check?: boolean;
  readonly modeline?: boolean;
}

async function run({ write = false, check = false, modeline = false }: SchemaOptions): Promise<number> {
  if (modeline) {
    process.stdout.write(SCHEMA_MODELINE);
    return 0;
  }
  const schema = configJsonSchema();
  if (check) {
    const shipped = await readFile(SHIPPED_SCHEMA, 'utf8').catch(() => '');
    if (shipped === schema) return 0;
    tell('config/schema.json is out of date: run "endpoint-syncer schema --write"');
    return 1;
  }
  if (write) await writeFile(SHIPPED_SCHEMA, schema);
  else process.stdout.write(schema);
  return 0;
}

interface Manifest {
  readonly version: string;
  readonly repository: { readonly url: string };
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as Manifest; // our own file
}

/** Reads package.json, so that the version has one source. */
export function packageVersion(): string {
  return manifest().version;
}

/** What the parts of this program get from outside of it. */
export function programParts() {
  return { clock: systemClock, random: systemRandom, version: packageVersion() };
}

/** This version in the releases of the repository. No registry has the package, so its name there is free for others to register. */
export function releaseUrl(): string {
  const { version, repository } = manifest();
  const home = repository.url.replaceAll(/^git\+|\.git$/gu, '');
  return `${home}/releases/download/v${version}/endpoint-syncer-${version}.tgz`;
}

/** A file by its path in the package, from a source file and from the bundle, which are in different folders. */
export function packageFile(path: string): URL {
  const manifest = findPackageJSON(import.meta.url);
  if (manifest === undefined) throw new InvariantError('the program is outside of its package');
  return new URL(path, pathToFileURL(manifest));
}

const SHIPPED_SCHEMA = packageFile('config/schema.json');

/** The first line of a configuration file, wherever the file is. */
export const SCHEMA_MODELINE = `# yaml-language-server: $schema=${SHIPPED_SCHEMA.href}\n`;
