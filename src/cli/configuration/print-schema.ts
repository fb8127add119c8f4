/** `schema`: prints, writes or checks the JSON Schema of the configuration file. */

import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { configJsonSchema } from '../../config/schema/json-schema.ts';

const SHIPPED = new URL('../../../config/schema.json', import.meta.url);

export function define(command: Command, exit: (code: number) => void): void {
  command
    .option('-w, --write', 'write the schema to config/schema.json')
    .option('--check', 'exit 1 if config/schema.json is out of date')
    .action(async (options: { write?: boolean; check?: boolean }) => exit(await run(options)));
}

async function run({ write = false, check = false }: { write?: boolean; check?: boolean }): Promise<number> {
  const schema = configJsonSchema();
  if (check) {
    const shipped = await readFile(SHIPPED, 'utf8').catch(() => '');
    if (shipped === schema) return 0;
    process.stderr.write('config/schema.json is out of date: run "endpoint-syncer schema --write"\n');
    return 1;
  }
  if (write) await writeFile(SHIPPED, schema);
  else process.stdout.write(schema);
  return 0;
}
