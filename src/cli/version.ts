/** `version`: one line of text, or JSON. */

import { formatOption } from './output/listing.ts';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { InvariantError } from '../base/errors.ts';

export function define(command: Command): void {
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

/** This version in the releases of the repository. No registry has the package, so anybody may register its name there. */
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
