/** The schema of a whole configuration file, with the sections of both products. */

import * as z from 'zod';
import { managementSchema } from '../../access-keys/config.ts';
import { SECTIONS_SCHEMA } from '../../shared-config/shared.ts';
import { SYNC_RULES_SCHEMA, syncSections } from '../../syncer/config/schema.ts';

export const configSchema = syncSections.extend({ managementApi: managementSchema });

// The JSON Schema of a configuration file, for editors.

/** Identifies the schema wherever it is copied to; it is not an address. */
const ID = 'urn:endpoint-syncer:configuration';

function jsonSchema() {
  return z.toJSONSchema(configSchema, { target: 'draft-7', io: 'input' });
}

/** Text of `config/schema.json`. Draft 7 is what editors understand best. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = jsonSchema();
  const titled = {
    $schema,
    $id: ID,
    title: 'endpoint-syncer configuration',
    description: 'A vCluster configuration file with the sections endpointSyncer and managementApi added.',
    ...schema,
    ...SECTIONS_SCHEMA,
    ...SYNC_RULES_SCHEMA,
  };
  return `${JSON.stringify(titled, null, 2)}\n`;
}

type Node = z.core.JSONSchema.BaseSchema;

/** Text of `flag-fields.json`: the fields of our own sections that hold one scalar, each with its type and its words. */
export function flagFieldsJson(): string {
  const { properties } = jsonSchema();
  const rows = ['endpointSyncer', 'managementApi'].flatMap((section) =>
    scalarsIn(properties?.[section] as Node, [section]),
  );
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]\n`;
}

function scalarsIn({ properties, anyOf, type, enum: words }: Node, path: readonly string[]): object[] {
  if (properties !== undefined)
    return Object.entries(properties).flatMap(([key, field]) => scalarsIn(field as Node, [...path, key]));
  // Of several forms, the first one is the short one.
  if (anyOf !== undefined) return scalarsIn(anyOf[0] as Node, path);
  return type === 'array' || type === 'object' ? [] : [{ path: path.join('.'), type, words }];
}
