/** `version`: one line of text, or JSON. */

import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';

export function define(command: Command): void {
  const output = new Option('-o, --output <format>', 'text or json')
    .choices(['text', 'json'])
    .default('text');
  command.addOption(output).action((options: { output: string }) => {
    const version = packageVersion();
    const text =
      options.output === 'json'
        ? JSON.stringify({ version, node: process.version })
        : `endpoint-syncer ${version} (node ${process.version})`;
    process.stdout.write(`${text}\n`);
  });
}

/** Reads package.json, so that the version has one source. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string }; // our own file
  return version;
}
