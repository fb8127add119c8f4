/** Preloaded with `--import`: one module loads with the bug of the mutant that `SIM_MUTANT` names. */

import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mutated } from './mutated.ts';
import { MUTANTS } from './mutants.ts';

const name = process.env['SIM_MUTANT'];
const mutant = MUTANTS.find((one) => one.name === name);
if (mutant === undefined) throw new Error(`there is no mutant ${JSON.stringify(name)}`);

const path = join(import.meta.dirname, '..', '..', '..', 'src', mutant.file);
const { href } = pathToFileURL(path);
const source = mutated(mutant, readFileSync(path, 'utf8'));

registerHooks({
  load: (url, context, next) =>
    url === href ? { format: 'module-typescript', shortCircuit: true, source } : next(url, context),
});
