/** `keys revoke`: deletes, disables or enables keys. */

import { StatusError } from '../../kube/status-error.ts';
import type { ApiCall, ApiClient } from './api-client.ts';

export interface RevokeOptions {
  readonly disable?: true;
  readonly enable?: true;
}

/** Continues after a failure; exit code 1 if any key failed. */
export async function revokeKeys(
  client: ApiClient,
  names: readonly string[],
  options: RevokeOptions,
): Promise<number> {
  if (options.disable && options.enable) {
    process.stderr.write('error: --disable and --enable exclude each other\n');
    return 2;
  }
  let failures = 0;
  for (const name of names) {
    try {
      await client.send(callFor(name, options));
      process.stderr.write(`key ${name} is ${wordFor(options)}\n`);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      failures += 1;
      process.stderr.write(`error: ${error.message}\n`);
    }
  }
  return failures === 0 ? 0 : 1;
}

function callFor(name: string, { disable, enable }: RevokeOptions): ApiCall {
  const path = `ownedaccesskeys/${encodeURIComponent(name)}`;
  if (!disable && !enable) return { method: 'DELETE', path };
  const body = { spec: { disabled: disable === true } };
  return { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' };
}

function wordFor({ disable, enable }: RevokeOptions): string {
  if (disable) return 'disabled';
  return enable ? 'enabled' : 'revoked';
}
