/** `schema`: prints the JSON Schema of the configuration file, for editors. */

import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { configJsonSchema } from './config/schema.ts';
import { packageFile } from './installation.ts';
import { tell, type ExitWith } from './output/terminal.ts';

export function define(command: Command, exitWith: ExitWith): void {
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

const SHIPPED_SCHEMA = packageFile('config/schema.json');

/** The first line of a configuration file, wherever the file is. */
export const SCHEMA_MODELINE = `# yaml-language-server: $schema=${SHIPPED_SCHEMA.href}\n`;
