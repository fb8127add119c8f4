/** Whether an editor that uses `config/schema.json` rejects what `validate` rejects, and accepts what it accepts. */

import { Ajv } from 'ajv';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { configJsonSchema } from '../../../src/cli/config/schema.ts';
import { parseText } from './setup.ts';

const ajv = new Ajv({ strict: false });
const schemaAccepts = ajv.compile(JSON.parse(configJsonSchema()) as object);

/** JSON Schema cannot compare values, count durations, or parse paths and expressions. */
const INEXPRESSIBLE = [
  /^must be between/u,
  /must not be longer than/u,
  /have the same path/u,
  /cannot be patched/u,
  /^is also endpointSyncer\.http\.bindAddress/u,
  /^duplicate host namespace/u,
  /conflicts with/u,
  /multiple times/u,
  /cannot be longer than 32/u,
];

function errorsOf(file: JsonObject): string[] {
  return parseText(JSON.stringify(file))
    .problems.filter(({ severity }) => severity === 'error')
    .map(({ path, message }) => `${path}: ${message}`);
}

function isExpressible(error: string): boolean {
  const message = error.slice(error.indexOf(': ') + 2);
  return !INEXPRESSIBLE.some((pattern) => pattern.test(message));
}

/** Undefined if the schema and the loader agree about a file. */
export function disagreement(file: JsonObject): object | undefined {
  const errors = errorsOf(file);
  const isAccepted = schemaAccepts(file);
  const isEither = errors.length > 0 && !errors.some(isExpressible);
  if (isEither || isAccepted === (errors.length === 0)) return undefined;
  return { file, isAccepted, errors, schema: schemaAccepts.errors };
}

export const NAMED = { name: 'my-vcluster', host: { namespace: 'team-a' } };

const optional = (values: readonly JsonValue[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
export const object = (members: Record<string, readonly JsonValue[]>) =>
  fc
    .record(Object.fromEntries(Object.entries(members).map(([key, values]) => [key, optional(values)])))
    .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject); // drops what is undefined
