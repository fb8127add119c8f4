/** The JSON Schema of a configuration file, for editors. Loaded only by the `schema` command and tests. */

import * as z from 'zod';
import { configSchema } from './schema.ts';

/** Text of `config/schema.json`. Draft 7 is what editors understand best. */
export function configJsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { target: 'draft-7', io: 'input' });
  const titled = {
    $schema: schema.$schema,
    title: 'endpoint-syncer configuration',
    description: 'A vCluster configuration file with the sections endpointSyncer and managementApi added.',
    ...schema,
  };
  return `${JSON.stringify(titled, null, 2)}\n`;
}
