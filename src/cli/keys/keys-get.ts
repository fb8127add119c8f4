/** `keys get`: one key, as the server shows it; never its secret. */

import { stringify } from 'yaml';
import type { ApiClient } from './api-client.ts';
import { tableText, TABLE_MEDIA } from './keys-table.ts';
import { textIn } from './keys-output.ts';

/** Rejects with `StatusError` when the server refuses. */
export async function getKey(client: ApiClient, name: string, output: string): Promise<number> {
  const path = `ownedaccesskeys/${encodeURIComponent(name)}`;
  if (output === 'table' || output === 'wide') {
    const table = await client.send({ method: 'GET', path, accept: TABLE_MEDIA });
    process.stdout.write(tableText(table, output === 'wide'));
    return 0;
  }
  const key = await client.send({ method: 'GET', path });
  if (output === 'name') process.stdout.write(`${textIn(key, 'metadata', 'name')}\n`);
  else process.stdout.write(output === 'json' ? `${JSON.stringify(key, null, 2)}\n` : stringify(key));
  return 0;
}
