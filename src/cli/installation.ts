/** The command `version`, and what the manifest of this installation says. */

import { formatOption } from './output/listing.ts';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { systemClock } from '../base/clock.ts';
import { InvariantError } from '../base/errors.ts';
import { systemRandom } from '../base/random.ts';

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
