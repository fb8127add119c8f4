/** `keys rotate`: another secret for the same key. */

import type { ApiClient, ApiConnection } from './api-client.ts';
import { newKeyText, type KeyFormat } from './keys-output.ts';
import { printSecret } from './secret-output.ts';

export interface RotateOptions {
  readonly output: KeyFormat;
  /** Seconds. */
  readonly overlap: number;
}

/** Prints the new secret. Rejects with `StatusError` when the server refuses. */
export async function rotateKey(
  client: ApiClient,
  connection: ApiConnection,
  name: string,
  { output, overlap }: RotateOptions,
): Promise<number> {
  const nowMs = Date.now();
  const rotated = await client.send({
    method: 'POST',
    path: `ownedaccesskeys/${encodeURIComponent(name)}/rotate`,
    body: { overlapSeconds: overlap },
  });
  printSecret(newKeyText(rotated, output, connection));
  const until = new Date(nowMs + overlap * 1000).toISOString().replace(/\.\d+Z$/u, 'Z');
  const old = overlap === 0 ? 'the old one no longer works' : `the old one works until ${until}`;
  process.stderr.write(`key ${name} has a new secret, which is not shown again; ${old}\n`);
  return 0;
}
