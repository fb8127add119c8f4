/** Turns errors that the user can act on into a line on standard error and an exit code; rethrows every other error, which is a bug. */

import { ConfigError, TerminalError } from '../../base/errors.ts';
import { StatusError } from '../../kube/status-error.ts';
import { StoreError } from '../../apiserver/storage/store.ts';
import { reportConfigError } from './config-report.ts';

/** `failure` is the exit code for commands where 1 has another meaning. */
export async function guarded(work: () => number | Promise<number>, failure = 1): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ConfigError) return reportConfigError(error);
    if (!isActionable(error)) throw error;
    process.stderr.write(`error: ${error.message}\n`);
    return failure;
  }
}

function isActionable(error: unknown): error is TerminalError | StatusError | StoreError {
  return error instanceof TerminalError || error instanceof StatusError || error instanceof StoreError;
}
