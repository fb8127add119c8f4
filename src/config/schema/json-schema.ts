/** The JSON Schema of a configuration file, for editors. Loaded only by the `schema` command and tests. */

import * as z from 'zod';
import { FILE_RULES } from './editor-rules.ts';
import { configSchema } from './schema.ts';

/** Identifies the schema wherever it is copied to; it is not an address. */
const ID = 'urn:endpoint-syncer:configuration';

/** Text of `config/schema.json`. Draft 7 is what editors understand best. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { target: 'draft-7', io: 'input' });
  const titled = {
    $schema,
    $id: ID,
    title: 'endpoint-syncer configuration',
    description: 'A vCluster configuration file with the sections endpointSyncer and managementApi added.',
    ...schema,
    ...FILE_RULES,
  };
  return `${JSON.stringify(titled, null, 2)}\n`;
}
